package guard_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/cmd/hasp/internal/guard"
)

// feeder is the first argument of the test binary in the part of hasp: it guards a
// command and prints what the guard reports.
const feeder = "__feeder"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == guard.Argument {
		os.Exit(guard.Serve(os.Args[2:]))
	}
	if len(os.Args) > 3 && os.Args[1] == feeder {
		os.Exit(feed(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// feed tells the guard every third of the life that the life begins anew.
func feed(life, script string) int {
	lasts, err := time.ParseDuration(life)
	if err != nil {
		return 2
	}
	now, err := guard.Now()
	if err != nil {
		return 2
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		return 2
	}
	p, err := guard.Start("/proc/self/exe", guard.Command{
		Path: shell, Args: []string{"sh", "-c", script}, Env: os.Environ(),
		Term: now.Add(lasts * 4 / 5), Kill: now.Add(lasts),
	})
	if err != nil {
		fmt.Println(err)
		return 2
	}
	tick := time.NewTicker(lasts / 3)
	for {
		select {
		case <-tick.C:
			if now, err = guard.Now(); err != nil {
				return 2
			}
			p.Trust(now.Add(lasts*4/5), now.Add(lasts))
		case r, ok := <-p.Reports():
			if !ok {
				return 0
			}
			fmt.Print(r)
		}
	}
}

// guarded is a command under a guard under a feeder.
type guarded struct {
	*exec.Cmd
	dir string
	out *strings.Builder
}

// family starts more than one kind of descendant; each writes its process id to a
// file, and none ends by itself or by TERM.
const family = `
one() { sh -c 'trap "" TERM HUP INT; echo $$ > "$1.new"; mv "$1.new" "$1.pid"; while :; do sleep 1; done' sh "$1"; }
trap "" TERM
one plain &
setsid sh -c 'trap "" TERM HUP; echo $$ > session.new; mv session.new session.pid; while :; do sleep 1; done' &
( setsid sh -c 'trap "" TERM HUP; (echo; sh -c "trap \"\" TERM HUP; echo \$\$ > orphan.new; mv orphan.new orphan.pid; while :; do sleep 1; done") & exit 0' & )
echo $$ > self.new; mv self.new self.pid
`

func familyNames() []string { return []string{"plain", "session", "orphan", "self"} }

func start(t *testing.T, life time.Duration, script string) *guarded {
	t.Helper()
	g := &guarded{dir: t.TempDir(), out: new(strings.Builder)}
	g.Cmd = exec.Command(os.Args[0], feeder, life.String(), script)
	g.Dir, g.Stdout, g.Stderr = g.dir, g.out, os.Stderr
	g.WaitDelay = 5 * time.Second
	g.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Process.Kill() })
	return g
}

// pids waits until all have written their process ids.
func (g *guarded) pids(t *testing.T, names ...string) []int {
	t.Helper()
	var pids []int
	for _, name := range names {
		eventually(t, name+" runs", func() bool {
			text, err := os.ReadFile(filepath.Join(g.dir, name+".pid"))
			if err != nil {
				return false
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				return false
			}
			pids = append(pids, pid)
			return true
		})
	}
	return pids
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in ten seconds: %s", what)
		}
	}
}

// state is the letter the kernel gives a process, 0 where there is none.
func state(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	return stat[strings.LastIndexByte(string(stat), ')')+2]
}

func alive(pid int) bool { s := state(pid); return s != 0 && s != 'Z' && s != 'X' }

func wantAllDead(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, fmt.Sprintf("all of %v are dead", pids), func() bool {
		for _, pid := range pids {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

// guardOf is the process between the feeder and its command.
func (g *guarded) guardOf(t *testing.T) int {
	t.Helper()
	guardPID := 0
	eventually(t, "the feeder has a guard", func() bool {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", g.Process.Pid, g.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", g.Process.Pid))
		for _, task := range tasks {
			more, _ := os.ReadFile(task)
			list = append(append(list, ' '), more...)
		}
		for _, word := range strings.Fields(string(list)) {
			guardPID, _ = strconv.Atoi(word)
		}
		return guardPID != 0
	})
	return guardPID
}

func TestEveryDescendantDiesWithHasp(t *testing.T) {
	t.Parallel()
	g := start(t, time.Minute, family+"while :; do sleep 1; done")
	pids := append(g.pids(t, familyNames()...), g.guardOf(t))
	if err := g.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wantAllDead(t, pids)
}

func TestEveryDescendantDiesAtTheDeadlineWhileHaspIsStopped(t *testing.T) {
	t.Parallel()
	g := start(t, time.Second, family+"while :; do sleep 1; done")
	pids := append(g.pids(t, familyNames()...), g.guardOf(t))
	if err := g.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wantAllDead(t, pids[:len(pids)-1]) // by itself it would run for ever
	if err := g.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	_ = g.Wait()
	for _, want := range []string{"started", "warned", "killing", "ended 9", "gone"} {
		if !strings.Contains(g.out.String(), want) {
			t.Errorf("reports have no %q:\n%s", want, g.out)
		}
	}
}

func TestEveryDescendantDiesWithTheGuard(t *testing.T) {
	t.Parallel()
	g := start(t, time.Minute, family+"while :; do sleep 1; done")
	pids := g.pids(t, familyNames()...)
	if err := syscall.Kill(g.guardOf(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = g.Wait() // the feeder ends after it has killed the rest
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive after hasp has ended", pid)
		}
	}
	if !strings.HasSuffix(g.out.String(), "died 0\n") {
		t.Errorf("reports:\n%s", g.out)
	}
}

func TestWhatTheCommandLeavesBehindIsEndedBeforeGone(t *testing.T) {
	t.Parallel()
	g := start(t, time.Minute, family+"while [ ! -e orphan.pid ] || [ ! -e session.pid ] || [ ! -e plain.pid ]; do sleep 0.01; done; exit 3")
	pids := g.pids(t, familyNames()...)
	_ = g.Wait()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive after gone", pid)
		}
	}
	if out := g.out.String(); !strings.Contains(out, "ended 768\n") || !strings.HasSuffix(out, "gone 0\n") {
		t.Errorf("reports:\n%s", out)
	}
}

func TestAChainOfForksDoesNotOutrunTheGuard(t *testing.T) {
	t.Parallel()
	g := start(t, time.Minute, `
cat > chain.sh <<'END'
echo $$ > chain.new; mv chain.new chain.pid
setsid sh ./chain.sh &
END
sh ./chain.sh
while :; do sleep 1; done`)
	g.pids(t, "chain")
	guardPID := g.guardOf(t)
	if err := g.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wantAllDead(t, []int{guardPID})
	last := g.pids(t, "chain")
	wantAllDead(t, last)
}

func TestACommandThatIsNotThereIsReported(t *testing.T) {
	t.Parallel()
	now, err := guard.Now()
	if err != nil {
		t.Fatal(err)
	}
	p, err := guard.Start(os.Args[0], guard.Command{
		Path: filepath.Join(t.TempDir(), "nothing"), Args: []string{"nothing"},
		Term: now.Add(time.Minute), Kill: now.Add(time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []guard.Report
	for r := range p.Reports() {
		got = append(got, r)
	}
	want := []guard.Report{{Kind: guard.Failed, Number: int(syscall.ENOENT)}, {Kind: guard.Gone}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("reports %v, want %v", got, want)
	}
}

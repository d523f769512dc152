//go:build linux

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the command, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hasp")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "hasp")
	build := exec.Command("go", "build", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n%s", build, err, out)
		return 1
	}
	// What was ignored here, as under nohup and in the background of a script, the shells
	// under test could not trap. What is heard here has its default there.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	return m.Run()
}

// place is a store of its own and a folder for what the commands under test write.
type place struct {
	t   *testing.T
	dir string
	url string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir()}
	p.url = "sqlite:" + filepath.Join(p.dir, "locks.db")
	p.want(0, p.do("migrate"))
	return p
}

// env is all that the started processes know.
func (p *place) env(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "HASP_URL=" + p.url}, more...)
}

// process is a hasp that was started.
type process struct {
	*exec.Cmd
	out, err *output
	began    time.Time
	ended    chan struct{}
}

// result is what has come of one.
type result struct {
	code     int
	out, err string
	took     time.Duration
}

// output may be read while it is written.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = p.dir, p.env()
	return cmd
}

// start starts hasp.
func (p *place) start(args ...string) *process {
	p.t.Helper()
	return p.begin(p.command(args...))
}

func (p *place) begin(cmd *exec.Cmd) *process {
	p.t.Helper()
	h := &process{Cmd: cmd, out: new(output), err: new(output), ended: make(chan struct{})}
	h.Stdout, h.Stderr = h.out, h.err
	h.WaitDelay = 10 * time.Second // something that was not killed may have the pipes open
	h.began = time.Now()
	if err := h.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(h.ended)
		_ = h.Wait()
	}()
	p.t.Cleanup(func() {
		_ = h.Process.Kill()
		<-h.ended
	})
	return h
}

// do runs hasp to its end.
func (p *place) do(args ...string) result {
	p.t.Helper()
	return p.end(p.start(args...))
}

// end waits for the end.
func (p *place) end(h *process) result {
	p.t.Helper()
	select {
	case <-h.ended:
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("%v has not ended in two minutes\nstdout: %s\nstderr: %s", h.Args, h.out, h.err)
	}
	return result{code: h.ProcessState.ExitCode(), out: h.out.String(), err: h.err.String(), took: time.Since(h.began)}
}

// want checks an exit code.
func (p *place) want(code int, got result) {
	p.t.Helper()
	if got.code != code {
		p.t.Errorf("exit code %d, want %d\nstdout: %s\nstderr: %s", got.code, code, got.out, got.err)
	}
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) exists(name string) bool {
	_, err := os.Stat(p.path(name))
	return err == nil
}

func (p *place) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// file waits for a file that a command makes.
func (p *place) file(name string) {
	p.t.Helper()
	p.eventually(name+" is there", func() bool { return p.exists(name) })
}

// pid waits for a file with a process id in it.
func (p *place) pid(name string) int {
	p.t.Helper()
	pid := 0
	p.eventually(name+" holds a process id", func() bool {
		text, _ := os.ReadFile(p.path(name))
		pid, _ = strconv.Atoi(strings.TrimSuffix(string(text), "\n"))
		return pid > 0 && strings.HasSuffix(string(text), "\n")
	})
	return pid
}

// patience is what a slow and busy machine may need on top of the times that are promised,
// and less than what the processes here sleep and hold.
const patience = 25 * time.Second

func (p *place) eventually(what string, is func() bool) {
	p.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("not in two minutes: %s", what)
		}
	}
}

// shown is what show --json prints.
type shown struct {
	Key     string
	Waiting int
	Holders []shownClaim
	Waiters []shownClaim
}

type shownClaim struct {
	Name, Token string
	InLine      *int64 `json:"in_line_ms"`
	ExpiresIn   *int64 `json:"expires_in_ms"`
	Revoked     bool
}

func (p *place) show(key string) shown {
	p.t.Helper()
	got := p.do("show", key, "--json")
	p.want(0, got)
	var s shown
	if err := json.Unmarshal([]byte(got.out), &s); err != nil {
		p.t.Fatalf("%v in %s", err, got.out)
	}
	return s
}

// waiting waits until that many wait for the key k.
func (p *place) waiting(n int) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%d wait for k", n), func() bool { return p.show("k").Waiting == n })
}

// alive says whether a process runs or could.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state := stat[bytes.LastIndexByte(stat, ')')+2]
	return state != 'Z' && state != 'X'
}

// dead waits until none of them is alive.
func (p *place) dead(pids ...int) {
	p.t.Helper()
	p.eventually(fmt.Sprintf("%v are dead", pids), func() bool {
		for _, pid := range pids {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

// children are the child processes of a process.
func children(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var found []int
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// guardOf is the guard of a hasp.
func (p *place) guardOf(h *process) int {
	p.t.Helper()
	guard := 0
	p.eventually("there is a guard", func() bool {
		for _, guard = range children(h.Process.Pid) {
			return true
		}
		return false
	})
	return guard
}

func (p *place) kill(pid int, sig syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		p.t.Fatal(err)
	}
}

func pidOf(pid int) string { return strconv.Itoa(pid) }

func pidText(h *process) string { return strconv.Itoa(h.Process.Pid) }

// proceed makes the file that commands wait for.
func (p *place) proceed() {
	p.t.Helper()
	p.write("go", "")
}

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

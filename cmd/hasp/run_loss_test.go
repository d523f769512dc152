//go:build linux

package main_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stubborn is a command whose descendants end neither by TERM nor with their parent.
const stubborn = `
trap "" TERM HUP INT
sh -c 'trap "" TERM HUP; echo $$ > child; while :; do sleep 1; done' &
setsid sh -c 'trap "" TERM HUP; echo $$ > session; while :; do sleep 1; done' &
( setsid sh -c '(sh -c "trap \"\" TERM HUP; echo \$\$ > orphan; while :; do sleep 1; done") & exit 0' & )
echo $$ > self
while :; do sleep 1; done`

func (p *place) stubborn() []int {
	p.t.Helper()
	return []int{p.pid("self"), p.pid("child"), p.pid("session"), p.pid("orphan")}
}

// wantNoneRuns takes what the next holder found in /proc/PID/stat. A process with KILL
// pending has run its last instruction.
func wantNoneRuns(t *testing.T, stats string) {
	t.Helper()
	for line := range strings.Lines(stats) {
		fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
		if pending, err := strconv.Atoi(fields[28]); err != nil || fields[0] != "Z" && fields[0] != "X" && pending&(1<<(syscall.SIGKILL-1)) == 0 {
			t.Errorf("alive while the next ran: %s", line)
		}
	}
}

func TestXR1_KillOfTheHolderEndsAllAndTheNextStartsBeforeTheExpiry(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--ttl", "1m", "--", "sh", "-c", stubborn)
	pids := p.stubborn()
	next := p.start("run", "k", "--", "sh", "-c", `for pid in "$@"; do [ -e /proc/$pid ] && cat /proc/$pid/stat; done; :`, "sh",
		pidOf(pids[0]), pidOf(pids[1]), pidOf(pids[2]), pidOf(pids[3]))
	p.waiting(1)
	began := time.Now()
	p.kill(holder.Process.Pid, syscall.SIGKILL)
	got := p.end(next)
	p.want(0, got)
	if took := time.Since(began); took > patience {
		t.Errorf("the next had ended only after %s", took)
	}
	wantNoneRuns(t, got.out)
	p.dead(pids...)
}

func TestXR1_AfterAKillEveryKindOfLockIsFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ held, wanted []string }{
		"reader":    {[]string{"k", "--shared"}, []string{"k"}},
		"writer":    {[]string{"k"}, []string{"k", "--shared"}},
		"permits":   {[]string{"k", "--permits", "2/2"}, []string{"k", "--permits", "1/2"}},
		"many keys": {[]string{"a", "b", "c"}, []string{"c", "b", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			holder := p.start(append(append([]string{"run", "--ttl", "1m"}, c.held...), "--", "sh", "-c", "echo $$ > self; exec sleep 60")...)
			pid := p.pid("self")
			p.kill(holder.Process.Pid, syscall.SIGKILL)
			got := p.do(append(append([]string{"run", "--wait", "30s"}, c.wanted...), "--", "true")...)
			p.want(0, got)
			if got.took > patience {
				t.Errorf("free only after %s", got.took)
			}
			if alive(pid) {
				t.Error("the command is alive")
			}
		})
	}
}

func TestXR1_KillOfAWaiterDoesNotHoldUpAFreeKey(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--", "sh", "-c", ": > held; while [ ! -e go ]; do sleep 0.02; done")
	p.file("held")
	waiter := p.start("run", "k", "--", "touch", "ran")
	p.waiting(1)
	p.kill(waiter.Process.Pid, syscall.SIGKILL)
	p.proceed()
	p.want(0, p.end(holder))
	got := p.do("run", "k", "--wait", "30s", "--", "true")
	p.want(0, got)
	if got.took > 6*time.Second+patience {
		t.Errorf("the free key was had after %s", got.took)
	}
}

func TestCLI7_AStoppedHolderLosesItsCommandAndSaysSo(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--ttl", "2s", "--", "sh", "-c", stubborn)
	pids := p.stubborn()
	p.kill(holder.Process.Pid, syscall.SIGSTOP)
	began := time.Now()
	next := p.start("run", "k", "--", "sh", "-c", "for pid in "+pidOf(pids[0])+" "+pidOf(pids[2])+"; do kill -0 $pid && cat /proc/$pid/stat; done; :")
	p.dead(pids...)
	if took := time.Since(began); took > 2*time.Second+patience {
		t.Errorf("dead only after %s", took)
	}
	got := p.end(next)
	p.want(0, got)
	wantNoneRuns(t, got.out)
	time.Sleep(max(0, 6*time.Second-time.Since(began))) // stopped for three TTLs, as the check has it
	p.kill(holder.Process.Pid, syscall.SIGCONT)
	lost := p.end(holder)
	p.want(70, lost)
	if !strings.Contains(lost.err, "lease lost") && !strings.Contains(lost.err, "no renewal") {
		t.Errorf("stderr: %s", lost.err)
	}
}

func TestKillOfTheGuardEndsAllAndFreesTheKey(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--ttl", "1m", "--", "sh", "-c", stubborn)
	pids := p.stubborn()
	p.kill(p.guardOf(holder), syscall.SIGKILL)
	got := p.end(holder)
	p.want(137, got)
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive after hasp has ended", pid)
		}
	}
	if !strings.Contains(got.err, "guard") {
		t.Errorf("stderr: %s", got.err)
	}
	p.want(0, p.do("run", "k", "-n", "--", "true"))
}

func TestAStoppedGuardIsReplacedWhenTheLeaseIsLost(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--", "sh", "-c", stubborn)
	pids := p.stubborn()
	p.kill(p.guardOf(holder), syscall.SIGSTOP)
	p.want(0, p.do("release", "k", "--force"))
	p.want(70, p.end(holder))
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive after hasp has ended", pid)
		}
	}
}

func TestForcedReleaseEndsTheHoldersGroupBeforeTheTTL(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--ttl", "1m", "--", "sh", "-c", stubborn)
	pids := p.stubborn()
	began := time.Now()
	p.want(0, p.do("release", "k", "--force"))
	p.want(0, p.do("run", "k", "-n", "--", "true")) // it is free at once
	got := p.end(holder)
	p.want(70, got)
	if took := time.Since(began); took > patience {
		t.Errorf("ended after %s", took)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive after hasp has ended", pid)
		}
	}
}

func TestRevokeNeverLetsTheTwoOverlap(t *testing.T) {
	t.Parallel()
	for name, cleanup := range map[string]string{
		"a command that cleans up": `trap 'sleep 0.3; rm inside; exit 0' TERM`,
		"a command that does not":  `trap '' TERM`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			holder := p.start("run", "k", "--ttl", "3s", "--", "sh", "-c", cleanup+"; echo $$ > inside; cp inside pid; while :; do sleep 0.05; done")
			inside := p.pid("pid")
			next := p.start("run", "k", "--", "sh", "-c", "cat /proc/"+pidOf(inside)+"/stat 2>/dev/null; :")
			p.waiting(1)
			got := p.do("release", "k")
			p.want(0, got)
			if !strings.Contains(got.out, "revoked the lease of ") {
				t.Errorf("stdout: %s", got.out)
			}
			lost := p.end(holder)
			p.want(70, lost)
			if !strings.Contains(lost.err, "revoked") {
				t.Errorf("stderr: %s", lost.err)
			}
			after := p.end(next)
			p.want(0, after)
			wantNoneRuns(t, after.out)
		})
	}
}

func TestMaxHoldEndsTheCommandInTime(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	got := p.do("run", "k", "--ttl", "4s", "--max-hold", "5s", "--", "sh", "-c", "trap 'echo term' TERM; while :; do sleep 0.02; done")
	p.want(70, got)
	if got.out != "term\n" || !strings.Contains(got.err, "--max-hold") && !strings.Contains(got.err, "MaxHold") {
		t.Errorf("stdout: %q, stderr: %q", got.out, got.err)
	}
	if got.took < 5*time.Second || got.took > 5*time.Second+patience {
		t.Errorf("took %s", got.took)
	}
}

func TestALongCommandKeepsItsLease(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--ttl", "4s", "--", "sh", "-c", ": > held; sleep 9; exit 6")
	p.file("held")
	token := p.show("k").Holders[0].Token
	for {
		select {
		case <-holder.ended:
			p.want(6, p.end(holder))
			return
		case <-time.After(100 * time.Millisecond):
		}
		for _, h := range p.show("k").Holders {
			if h.Token != token {
				t.Fatalf("token %s became %s", token, h.Token)
			}
		}
	}
}

// Nobody is excluded by a file that was deleted, so the command must not go on.
func TestADeletedDatabaseEndsTheCommandWithinTheTTLAndTheWaitingToo(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--ttl", "2s", "--", "sh", "-c", "echo $$ > ready; exec sleep 60")
	command := p.pid("ready")
	waiter := p.start("run", "k", "--", "touch", "ran")
	p.waiting(1)
	for _, name := range []string{"locks.db", "locks.db-wal", "locks.db-shm"} {
		_ = os.Remove(p.path(name))
	}
	began := time.Now()
	p.dead(command)
	if took := time.Since(began); took > 2*time.Second+patience {
		t.Errorf("the command ran for %s more", took)
	}
	p.want(70, p.end(holder))
	got := p.end(waiter)
	p.want(69, got)
	if p.exists("ran") || !strings.Contains(got.err, "deleted or replaced") {
		t.Errorf("the waiter ran: %t, it said %q", p.exists("ran"), got.err)
	}
}

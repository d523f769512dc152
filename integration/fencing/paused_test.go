package fencing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/process"
)

const ttl = time.Second

// start starts a writer in a process of its own.
func start(t *testing.T, r role) *process.Process {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	p, err := process.Start(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func here(t *testing.T, r role) *writer {
	t.Helper()
	w, err := newWriter(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

func await(t *testing.T, p *process.Process, text string) {
	t.Helper()
	if err := p.Await(text); err != nil {
		t.Fatal(err)
	}
}

func say(t *testing.T, p *process.Process) {
	t.Helper()
	if _, err := io.WriteString(p.In, "\n"); err != nil {
		t.Fatal(err)
	}
}

// PZ-1: A reads, is stopped for longer than its lease lives, B comes and writes, A goes on
// and writes. The last of the ways is none, to see that the write is late indeed.
func TestPZ1APausedWriterIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		for way, want := range map[string]string{byColumn: "stale", byTable: "stale", byGuard: "lost", byNobody: "written"} {
			ctx, db := within(t), handle(t, d)
			before := number(t, db, "SELECT n FROM counters")
			r := role{Database: d, Way: way, Play: "late", TTL: ttl}
			a, b := start(t, r), here(t, r)
			await(t, a, "read")
			if err := a.Pause(); err != nil {
				t.Fatal(err)
			}
			p, err := b.lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := b.increment(ctx, p, func() {}); err != nil {
					t.Fatalf("%s: the holder: %v", way, err)
				}
			}
			if err := a.Resume(); err != nil {
				t.Fatal(err)
			}
			say(t, a)
			await(t, a, "outcome: "+want)
			if err := p.lease.Release(ctx); err != nil {
				t.Errorf("%s: the holder's release: %v", way, err)
			}
			written := number(t, db, "SELECT n FROM counters") - before
			if kept := way != byNobody; kept != (written == 2) {
				t.Errorf("%s: the counter is at +%d, after two writes of the holder", way, written)
			}
		}
	})
}

// A writer stopped in the middle of a transaction that it guards: nobody else gets the lock
// before that ends, and then sees what it wrote.
func TestPZ1AGuardedTransactionKeepsTheLockThroughAPause(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		ctx := within(t)
		r := role{Database: d, Way: byGuard, Play: "open", TTL: ttl}
		a, b := start(t, r), here(t, r)
		await(t, a, "open")
		if err := a.Pause(); err != nil {
			t.Fatal(err)
		}
		waiting := b.client.With(hasp.LockOptions{Wait: 3 * ttl})
		if lease, err := waiting.Mutex(key).Lock(ctx); err == nil || !errors.Is(err, hasp.ErrHeld) && !errors.Is(err, hasp.ErrUnavailable) {
			t.Fatalf("while the transaction is open another lock is %v, %v", lease, err)
		}
		if err := a.Resume(); err != nil {
			t.Fatal(err)
		}
		say(t, a)
		await(t, a, "outcome: written")
		p, err := b.lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n := number(t, b.db, "SELECT n FROM counters"); n != 100 {
			t.Errorf("the next holder sees %d, want what was written under the guard", n)
		}
		if err := p.lease.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}

// PZ-1 with random stops: what two processes have written under the lock is all there.
func TestPZ1NoUpdateIsLostThroughRandomStops(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		for _, way := range []string{byColumn, byTable, byGuard} {
			db := handle(t, d)
			before := number(t, db, "SELECT n FROM counters")
			r := role{Database: d, Way: way, Play: "loop", TTL: 400 * time.Millisecond}
			a, b := start(t, r), here(t, r)
			ctx, stop := context.WithCancel(t.Context())
			own := make(chan int, 1)
			go func() {
				written, _ := b.increments(ctx)
				own <- written
			}()
			for range stops() {
				time.Sleep(time.Duration(rand.Int64N(int64(r.TTL))))
				if err := a.Pause(); err != nil {
					t.Error(err)
				}
				time.Sleep(r.TTL + time.Duration(rand.Int64N(int64(2*r.TTL))))
				if err := a.Resume(); err != nil {
					t.Error(err)
				}
			}
			for ctx := within(t); number(t, db, "SELECT n FROM counters") == before; {
				if ctx.Err() != nil {
					t.Fatalf("%s: nobody has written anything: %q", way, a.Output())
				}
				time.Sleep(10 * time.Millisecond)
			}
			stop()
			_ = a.In.Close()
			if err := a.Wait(within(t)); err != nil {
				t.Fatal(err)
			}
			others, refused := 0, 0
			lines := strings.Split(a.Output(), "\n")
			if _, err := fmt.Sscanf(lines[len(lines)-1], "written: %d refused: %d", &others, &refused); err != nil {
				t.Fatalf("%v in %q", err, a.Output())
			}
			mine := <-own
			if n := number(t, db, "SELECT n FROM counters") - before; n != int64(mine+others) {
				t.Errorf("%s: %d and %d updates came to %d; %q", way, mine, others, n, a.Output())
			}
			t.Logf("%s: %d updates here, %d there, %d refused", way, mine, others, refused)
		}
	})
}

func stops() int {
	if os.Getenv("HASP_SOAK") != "" {
		return 200
	}
	return 3
}

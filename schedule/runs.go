package schedule

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hasp-dev/hasp"
)

// Runs is what is known of a job.
type Runs struct {
	// Last is the newest tick that was run or is running in the fleet, as far as the store
	// still has it; for a job of the leader, who leads. Zero: none.
	Last Tick
	// Next is the next tick by this process's clock. Zero: there is none, or the job is of
	// the leader.
	Next time.Time
	// Here is this process's newest run. Zero: none.
	Here Result
}

// Tick is a run in the fleet.
type Tick struct {
	At      time.Time // its scheduled time; zero for a job of the leader
	By      string    // the name of the client that runs or ran it
	Running bool      // a job of the leader counts as running
}

// Result is a run in this process.
type Result struct {
	Tick    time.Time // its scheduled time
	Began   time.Time
	Running bool
	Took    time.Duration // once it is over
	Err     error         // what Run returned
}

// Runs answers what is known of a job of this scheduler.
func (s *Scheduler) Runs(ctx context.Context, job string) (Runs, error) {
	s.mu.Lock()
	r := s.jobs[job]
	s.mu.Unlock()
	if r == nil {
		return Runs{}, fmt.Errorf("schedule: %w: there is no job %q", hasp.ErrInvalid, job)
	}
	r.mu.Lock()
	known := Runs{Here: r.last}
	r.mu.Unlock()
	if r.spec == nil {
		line, err := s.client.Inspect(ctx, r.key("leader", job))
		if err == nil && len(line.Holders) > 0 {
			known.Last = Tick{By: line.Holders[0].Name, Running: true}
		}
		return known, err
	}
	known.Next = r.spec.next(s.opts.Now())
	prefix := r.key("tick", job) + ":"
	for line, err := range s.client.List(ctx, prefix) {
		if err != nil {
			return known, err
		}
		ms, err := strconv.ParseInt(strings.TrimPrefix(line.Key, prefix), 10, 64)
		if err != nil || len(line.Holders) == 0 {
			continue // not a tick, or one that nobody has any more
		}
		h := line.Holders[0]
		known.Last = Tick{At: time.UnixMilli(ms).In(r.spec.zone), By: h.Name, Running: !h.Kept}
	}
	return known, nil
}

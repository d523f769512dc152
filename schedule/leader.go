package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/elect"
)

// lead runs a job of the leader, whenever this process is the leader, until ctx ends.
func (r *runner) lead(ctx context.Context) error {
	err := elect.Run(ctx, r.client, r.key("leader", r.job.Name), r.term, &elect.Options{TTL: r.opts.TTL, Logger: r.log})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it ended since Run did
	}
	return fmt.Errorf("schedule: job %q: %w", r.job.Name, err)
}

// term runs the job while this process leads.
func (r *runner) term(ctx context.Context) error {
	next := time.Now().Add(r.job.Initial)
	for sleep(ctx, time.Until(next)+r.jitter()) {
		began := time.Now()
		r.once(ctx)
		if r.job.After > 0 {
			next = time.Now().Add(r.job.After)
		} else if next = next.Add(r.job.Every); next.Before(began) {
			next = time.Now()
		}
	}
	return ctx.Err()
}

func (r *runner) once(ctx context.Context) {
	if r.job.AtMost > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.job.AtMost)
		defer cancel()
	}
	_ = r.work(ctx, r.opts.Now()) // noted and logged; the next run comes all the same
}

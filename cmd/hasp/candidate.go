//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/elect"
)

// candidate stands in an election for a command.
type candidate struct {
	*runner
	once   bool
	store  *opened
	terms  chan *tenure
	cancel context.CancelCauseFunc // ends the campaign
	late   <-chan time.Time        // when the campaign that ends is waited for no more
}

// tenure is one term on its way through the goroutine that gets the signals.
type tenure struct {
	lease *hasp.Lease
	end   chan error
}

// errCutShort says that the guard ended the command, as it heard of no renewal in time,
// whatever has come of the lease since.
var errCutShort = errors.New("no renewal was answered in time; the command was ended")

// elect campaigns until the command has ended by itself, or a signal comes.
func (a *app) elect(ctx context.Context, c candidacy) error {
	caught := listen()
	defer signal.Stop(caught)
	r := &runner{app: a, job: c.job, signals: caught, renewed: make(chan struct{}, 1)}
	store, err := a.connect(ctx, &hasp.Options{Lock: c.lock, Observe: r.observe})
	if err != nil {
		return err
	}
	if d, ok := store.store.Driver().(interface{ LockFile() *os.File }); ok {
		r.proof = d.LockFile
	}
	err = (&candidate{runner: r, once: c.once, store: store, terms: make(chan *tenure)}).stand(ctx)
	var sig interrupted
	if errors.As(err, &sig) {
		r.depart(ctx, store, nil)
	} else {
		r.part(ctx, store)
	}
	return err
}

// stand serves the campaign: it supervises the command while this process leads, and
// lets a signal end the waiting.
func (c *candidate) stand(ctx context.Context) error {
	if err := errors.Join(c.refuseNested(ctx, c.store), c.store.Mutex(c.job.keys[0]).Err()); err != nil {
		return err
	}
	ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	done := make(chan error, 1)
	go func() { done <- c.campaign(ctx) }()
	for {
		select {
		case t := <-c.terms:
			t.end <- c.rule(ctx, t.lease)
		case sig := <-c.signals:
			if ends(sig) {
				c.cancel(interrupted(number(sig)))
			}
		case <-c.late:
			return exited(exitLost)
		case err := <-done:
			var sig interrupted
			if errors.As(context.Cause(ctx), &sig) {
				return &failure{code: exitSignal + int(sig), kind: "interrupted", err: sig}
			}
			return c.verdict(err)
		}
	}
}

// campaign stands in line again after each term that was lost.
func (c *candidate) campaign(ctx context.Context) error {
	if err := c.store.Ping(ctx); err != nil {
		return err
	}
	opts := &elect.Options{Once: c.once, Logger: slog.New(teller{c.app, "election"})}
	for {
		err := elect.Run(ctx, c.store.Client, c.job.keys[0], c.lead, opts)
		if c.once || !errors.Is(err, errCutShort) || ctx.Err() != nil {
			return err
		}
	}
}

// lead hands one term to the goroutine that gets the signals.
func (c *candidate) lead(ctx context.Context) error {
	lease, ok := hasp.FromContext(ctx, c.job.keys[0])
	if !ok {
		return fmt.Errorf("%w: the context of the term carries no lease", hasp.ErrInvalid)
	}
	t := &tenure{lease: lease, end: make(chan error, 1)}
	select {
	case c.terms <- t:
		return <-t.end
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rule runs the command for one term. It returns when nothing of it runs any more.
func (c *candidate) rule(ctx context.Context, lease *hasp.Lease) error {
	if ctx.Err() != nil { // a signal came in the same moment
		return ctx.Err()
	}
	s, err := c.start(c.store.url, lease)
	if err != nil {
		return err
	}
	end := s.watch()
	c.ended(end)
	if end.lost() {
		return c.lost(lease, end)
	}
	if err := end.startError(c.job); err != nil {
		return err
	}
	if end.guardDied {
		c.warn("guard_died", errors.New("the guard was killed, so the command was too"))
	}
	return exited(end.code())
}

// lost tells of a term that was lost. Who was told to end, and loses leadership before
// the command has ended, does not stand in line again.
func (c *candidate) lost(lease *hasp.Lease, end ending) error {
	err := end.lossError(c.job, nil)
	if c.once || end.asked {
		c.tell(&failure{code: exitLost, kind: "lost", err: err})
		c.cancel(err)
		c.late = time.After(time.Until(c.leave))
	} else {
		c.warn("lost", fmt.Errorf("%w, and hasp stands in line again", err))
	}
	if lease.Err() == nil {
		return errCutShort
	}
	return err
}

// verdict gives what the campaign returned its exit code.
func (c *candidate) verdict(err error) error {
	var code exited
	switch {
	case errors.Is(err, errCutShort), errors.Is(err, hasp.ErrLost):
		return exited(exitLost) // which was told when it happened
	case errors.As(err, &code):
		return code
	}
	return err
}

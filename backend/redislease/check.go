package redislease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

// Check implements driver.Driver. It runs every script once, on a key of its own that
// is gone after 10 s.
func (d *Driver) Check(ctx context.Context) error {
	if d.err != nil {
		return d.err
	}
	if err := d.fit(ctx); err != nil {
		return err
	}
	if err := d.rights(ctx); err != nil {
		return err
	}
	d.listenToItself(ctx)
	return d.rehearse(ctx)
}

// fit looks at version, role and settings of each server.
func (d *Driver) fit(ctx context.Context) error {
	got := make(chan error, 1)
	go func() { // a silent server must not hold the caller back
		if c := d.nodes.cluster; c != nil {
			got <- c.ForEachMaster(ctx, func(ctx context.Context, rdb *redis.Client) error { return d.fitOne(ctx, rdb) })
			return
		}
		got <- d.fitOne(ctx, d.rdb)
	}()
	select {
	case err := <-got:
		return classify(err)
	case <-ctx.Done():
		return ended(ctx)
	case <-d.life.Done():
		return unavailable(errClosed)
	}
}

func (d *Driver) fitOne(ctx context.Context, rdb redis.Cmdable) error {
	text, err := rdb.Info(ctx).Result()
	if code(err) == "NOPERM" {
		d.warn("info", fmt.Errorf("redislease: version, role and maxmemory-policy of the server were not looked at: %w", err))
		return nil
	}
	if err != nil {
		return err
	}
	info := properties(text)
	if _, err := speaking(info); err != nil {
		return err
	}
	if role := info["role"]; role != "" && role != "master" {
		return fmt.Errorf("redislease: %w: the server is a replica; connect to the master, or through Sentinel", driver.ErrRefused)
	}
	switch policy, seen := info["maxmemory_policy"]; {
	case d.opts.AllowEviction, policy == "noeviction":
	case !seen:
		d.warn("policy", errors.New("redislease: the server does not tell its maxmemory-policy; it must be noeviction"))
	default:
		return fmt.Errorf("redislease: %w: maxmemory-policy %s may evict locks; set noeviction, or redislease.Options.AllowEviction (allow_eviction=true in a URL)",
			driver.ErrRefused, policy)
	}
	return nil
}

// rehearse runs every script, so that each right a user lacks is found now.
func (d *Driver) rehearse(ctx context.Context) error {
	key := "check:" + rand.Text()
	life := driver.Life{Hold: time.Second, Wait: time.Second}
	claim := func(capacity int64) driver.Claim {
		c := driver.Claim{Ref: driver.Ref{Keys: []string{key}}, Weight: 1, Capacity: capacity, Life: life}
		_, _ = rand.Read(c.ID[:]) // never fails
		return c
	}
	a, b := claim(1), claim(1)
	steps := []struct {
		what string
		do   func() error
	}{
		{"join", func() error { return second(d.Join(ctx, driver.Join{Claim: a})) }},
		{"wait in line", func() error { return second(d.Join(ctx, driver.Join{Claim: b})) }},
		{"renew", func() error { return d.renewOne(ctx, driver.Renewal{Ref: b.Ref, Mode: driver.Extend, Life: life}) }},
		{"list", func() error { return second(d.line(ctx, key)) }},
		{"hand over", func() error { return second(d.Leave(ctx, driver.Leaving{Ref: a.Ref})) }},
		{"leave", func() error { return second(d.Leave(ctx, driver.Leaving{Ref: b.Ref})) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("redislease: a rehearsal to %s failed: %w", step.what, err)
		}
	}
	return nil
}

func second[T any](_ T, err error) error { return err }

func (d *Driver) renewOne(ctx context.Context, r driver.Renewal) error {
	var got error
	d.Renew(ctx, []driver.Renewal{r}, func(_ int, _ driver.Standing, err error) { got = err })
	return got
}

// listenToItself sends a message to itself and warns where it does not arrive: waiting
// goes by polling then.
func (d *Driver) listenToItself(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, unheard)
	defer cancel()
	got := make(chan error, 1)
	go func() { got <- d.echo(ctx) }()
	select {
	case err := <-got:
		if err != nil && !errors.Is(err, context.Canceled) {
			d.warn("signals", deaf(err))
		}
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			d.warn("signals", errors.New("redislease: a signal to itself was not heard within 1 s, so waiting goes by polling"))
		}
	}
}

// echo subscribes, publishes and waits for it.
func (d *Driver) echo(ctx context.Context) error {
	channel := inboxSpace + strings.ToLower(rand.Text()[:12])
	ps := d.rdb.Subscribe(ctx, channel)
	defer ps.Close()
	for {
		msg, err := ps.ReceiveTimeout(ctx, unheard)
		if err != nil {
			return classify(err)
		}
		switch msg.(type) {
		case *redis.Subscription:
			if err := d.rdb.Publish(ctx, channel, "N").Err(); err != nil {
				return classify(err)
			}
		case *redis.Message:
			return nil
		}
	}
}

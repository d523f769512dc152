package redislease

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

const (
	maxWaiters = 100 // of a line are listed
	listChunk  = 100 // claims a script shows at once
	scanCount  = 1000
	listWidth  = 64 // lines asked for in one go
)

// Lines implements driver.Driver. One line of up to 100 claims is shown as of one
// moment; longer ones are read in parts. A page of a prefix reads the names of all keys
// of every master (SCAN), since Redis keeps no order of keys: its cost grows with the
// database, not with the page.
func (d *Driver) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	if err := errors.Join(d.err, named(q.Validate())); err != nil {
		return driver.Page{}, err
	}
	if q.Key != "" {
		line, err := d.line(ctx, q.Key)
		if err != nil {
			return driver.Page{}, err
		}
		return driver.Page{Lines: []driver.Line{line}}, nil
	}
	keys, err := d.keysBehind(ctx, q)
	if err != nil {
		return driver.Page{}, err
	}
	limit := q.Limit
	if limit == 0 || limit > driver.MaxPage {
		limit = driver.MaxPage
	}
	var page driver.Page
	if len(keys) > limit {
		keys = keys[:limit]
		page.Next = keys[limit-1]
	}
	page.Lines, err = d.lines(ctx, keys)
	return page, err
}

// lines reads some lines side by side and leaves out the empty ones, and what is not
// hasp's.
func (d *Driver) lines(ctx context.Context, keys []string) ([]driver.Line, error) {
	all := make([]driver.Line, len(keys))
	errs := make([]error, len(keys))
	for begin := 0; begin < len(keys); begin += listWidth {
		var wg sync.WaitGroup
		for i := begin; i < min(begin+listWidth, len(keys)); i++ {
			wg.Go(func() { all[i], errs[i] = d.line(ctx, keys[i]) })
		}
		wg.Wait()
	}
	var out []driver.Line
	for i, line := range all {
		switch {
		case errs[i] != nil && (code(errs[i]) == "HASPFOREIGN" || code(errs[i]) == "WRONGTYPE"):
		case errs[i] != nil:
			return nil, errs[i]
		case len(line.Holders)+len(line.Waiters) > 0:
			out = append(out, line)
		}
	}
	return out, nil
}

// line reads one line.
func (d *Driver) line(ctx context.Context, key string) (driver.Line, error) {
	out := driver.Line{Key: key}
	for after := int64(0); ; {
		c := &call{script: &d.scripts.lines, keys: 4}
		c.args = append(d.naming.appendKeys(make([]any, 0, 6), key), after, listChunk)
		if err := d.call(ctx, c); err != nil {
			return out, err
		}
		reply, _ := c.reply.([]any)
		if len(reply) != 3 {
			return out, nil
		}
		head := integers(reply[:2])
		out.Waiting = int(head[0])
		claims, _ := reply[2].([]any)
		for _, claim := range claims {
			addEntry(&out, claim)
		}
		after = head[1]
		if after == 0 || len(out.Waiters) >= maxWaiters {
			return out, nil
		}
	}
}

// Bits of an entry's flags.
const (
	entryFixed = 1 << iota
	entryRevoked
	entryHolding
)

func addEntry(line *driver.Line, claim any) {
	f, _ := claim.([]any)
	if len(f) != 8 {
		return
	}
	n := make([]int64, len(f))
	for i, v := range f {
		switch v := v.(type) {
		case int64:
			n[i] = v
		case string:
			n[i] = number(v)
		}
	}
	name, _ := f[4].(string)
	e := driver.Entry{
		Number: n[0], Weight: n[1], Capacity: n[2], Index: uint8(n[3]), Name: name, //nolint:gosec // an index is below 64
		ExpiresIn: ms(n[5]), InLine: time.Duration(n[7]) * time.Microsecond,
		Fixed: n[6]&entryFixed != 0, Revoked: n[6]&entryRevoked != 0,
	}
	switch {
	case n[6]&entryHolding != 0:
		line.Holders = append(line.Holders, e)
	case len(line.Waiters) < maxWaiters:
		line.Waiters = append(line.Waiters, e)
	}
}

// keysBehind finds the keys of a prefix behind q.After, in order.
func (d *Driver) keysBehind(ctx context.Context, q driver.Query) ([]string, error) {
	type result struct {
		keys []string
		err  error
	}
	got := make(chan result, 1)
	go func() { // a silent server must not hold the caller back
		keys, err := d.scan(ctx, q)
		got <- result{keys, err}
	}()
	select {
	case r := <-got:
		return r.keys, r.err
	case <-ctx.Done():
		return nil, ended(ctx)
	case <-d.life.Done():
		return nil, unavailable(errClosed)
	}
}

func (d *Driver) scan(ctx context.Context, q driver.Query) ([]string, error) {
	var mu sync.Mutex
	var keys []string
	one := func(ctx context.Context, rdb redis.Cmdable) error {
		for _, pattern := range d.naming.patterns(q.Prefix) {
			it := rdb.Scan(ctx, 0, pattern, scanCount).Iterator()
			for it.Next(ctx) {
				key, ok := d.naming.key(it.Val())
				if !ok || key <= q.After || len(key) < len(q.Prefix) || key[:len(q.Prefix)] != q.Prefix {
					continue
				}
				mu.Lock()
				keys = append(keys, key)
				mu.Unlock()
			}
			if err := it.Err(); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	if c := d.nodes.cluster; c != nil {
		err = c.ForEachMaster(ctx, func(ctx context.Context, rdb *redis.Client) error { return one(ctx, rdb) })
	} else {
		err = one(ctx, d.rdb)
	}
	if err != nil {
		return nil, classify(err)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

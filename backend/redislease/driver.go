package redislease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

const (
	defaultReplicaTimeout = 500 * time.Millisecond
	// firstPoll is the first pause of a waiting client that hears no signals.
	firstPoll = 20 * time.Millisecond
)

// Driver is one client of a Redis server or cluster. It implements driver.Driver,
// driver.Signaler and driver.Operator.
type Driver struct {
	rdb     redis.UniversalClient
	opts    Options
	err     error // what New found wrong
	naming  naming
	scripts *scripts
	nodes   nodes

	life context.Context //nolint:containedctx // of what the driver sends; Close ends it
	end  context.CancelFunc

	mu     sync.Mutex // guards closed, so that nothing is added to work once Close waits
	closed bool
	work   sync.WaitGroup

	crowds   keyCache
	suspects suspects
	ear      ear
	warned   warnings
}

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Signaler = (*Driver)(nil)
	_ driver.Operator = (*Driver)(nil)
)

// New makes a driver over a client of go-redis: *redis.Client, also of Sentinel, or
// *redis.ClusterClient. It sends nothing; what it finds wrong is Features().Err. opts
// may be nil. The client stays the caller's: the driver never closes it.
func New(rdb redis.UniversalClient, opts *Options) *Driver {
	d := &Driver{rdb: rdb, scripts: newScripts()}
	if opts != nil {
		d.opts = *opts
	}
	if d.opts.ReplicaTimeout == 0 {
		d.opts.ReplicaTimeout = defaultReplicaTimeout
	}
	d.naming = naming{slot: d.opts.Slot}
	d.life, d.end = context.WithCancel(context.Background()) //nolint:forbidigo // it outlives every caller; Close ends it
	d.err = errors.Join(d.opts.validate(), d.attach(rdb))
	return d
}

// attach looks what kind of client it is.
func (d *Driver) attach(rdb redis.UniversalClient) error {
	switch c := rdb.(type) {
	case nil:
		return invalid("no client")
	case *redis.Ring:
		return invalid("*redis.Ring spreads keys without a common order; use *redis.Client or *redis.ClusterClient")
	case *redis.Client:
		if c == nil {
			return invalid("no client")
		}
		d.nodes.single = d.newNode(d.own(c), nil, 0).byLanes(c)
	case *redis.ClusterClient:
		if c == nil {
			return invalid("no client")
		}
		d.nodes.cluster, d.nodes.of = c, make(map[*redis.Client]*node)
	default:
		d.nodes.single = d.newNode(rdb, nil, time.Millisecond)
	}
	return nil
}

// maxRead is how long a reply is waited for where the user's client waits longer.
const maxRead = 5 * time.Second

// longestRead is how long a reply to a client with c's options is waited for.
func (d *Driver) longestRead(c *redis.Client) time.Duration {
	read := c.Options().ReadTimeout
	if read <= 0 || read > maxRead {
		read = maxRead
	}
	if d.opts.Replicas > 0 {
		read = max(read, d.opts.ReplicaTimeout+time.Second)
	}
	return read
}

// own is the user's client, with its pool and hooks, that neither reads for ever nor
// sends anything twice: the store would have to remember each ID then.
func (d *Driver) own(c *redis.Client) *redis.Client {
	clone := c.WithTimeout(d.longestRead(c))
	clone.Options().MaxRetries = 0 // its options are a copy of the user's
	hooks, _ := hooksOf(c)
	if kept, known := hooksOf(clone); known && len(kept) == 0 { // from go-redis 9.22 on a clone has none
		for _, h := range hooks {
			clone.AddHook(h)
		}
	}
	return clone
}

// Features implements driver.Driver.
func (d *Driver) Features() driver.Features {
	return driver.Features{
		Err:  d.err,
		Line: true, Shared: true, Tokens: true,
		ConfirmGrant: d.opts.Replicas > 0,
		MaxKeys:      driver.MaxKeys,
		Together:     d.together,
		Poll:         firstPoll,
		Step:         time.Millisecond,
	}
}

// together wants one slot for all keys of a claim in a cluster.
func (d *Driver) together(keys []string) error {
	if d.nodes.cluster == nil || len(keys) < 2 {
		return nil
	}
	tag := d.naming.tag(keys[0])
	for _, key := range keys[1:] {
		if d.naming.tag(key) != tag {
			return fmt.Errorf("redislease: %w: keys in different slots of a cluster; set redislease.Options.Slot (slot=TAG in a URL)", driver.ErrUnsupported)
		}
	}
	return nil
}

// Close implements driver.Driver. It ends every Listen, refuses further calls and waits
// for what is under way.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.end()
	defer d.nodes.close()
	done := make(chan struct{})
	go func() {
		d.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// background runs f so that Close waits for it; false: the driver is closed.
func (d *Driver) background(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.work.Go(f)
	return true
}

// End implements driver.Operator.
func (d *Driver) End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error) {
	if err := errors.Join(d.err, checkKeys(key)); err != nil {
		return nil, err
	}
	var found []int64
	for some := range slices.Chunk(slices.Clone(numbers), 32) {
		got, err := d.endSome(ctx, key, some, force)
		if err != nil {
			return nil, err
		}
		found = append(found, got...)
	}
	return found, nil
}

// endSome ends a few stays. Where they are found to stand in more lines than the call
// names it is sent again with those too.
func (d *Driver) endSome(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error) {
	lines := []string{d.naming.line(key)}
	for range 4 {
		c := &call{script: &d.scripts.end, keys: 4 * len(lines)}
		for _, line := range lines {
			c.args = appendLine(c.args, line)
		}
		c.args = append(c.args, bit(force))
		for _, n := range numbers {
			c.args = append(c.args, n)
		}
		if err := d.call(ctx, c); err != nil {
			return nil, err
		}
		reply, _ := c.reply.([]any)
		if len(reply) != 2 {
			break
		}
		values, _ := reply[1].([]any)
		if reply[0] == int64(1) {
			return integers(values), nil
		}
		for _, v := range values {
			if line, ok := v.(string); ok && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return nil, fmt.Errorf("redislease: %w: the claims of %q change too fast", driver.ErrUnavailable, key)
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

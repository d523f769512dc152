package redislease

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// runner is what a pipeline is sent through: a client, or a node of a cluster.
type runner interface {
	Pipeline() redis.Pipeliner
	Process(ctx context.Context, cmd redis.Cmder) error
}

// node is one server and the calls on their way to it.
type node struct {
	batcher
	d      *Driver
	rdb    runner
	retry  time.Duration // a call that took longer may have been sent twice; 0: never
	finder runner        // finds the master of a key anew; nil: there is one server only
	speaks atomic.Int32  // its flavour + 1, once known
}

// nodes are the servers in use.
type nodes struct {
	single  *node // not a cluster
	cluster *redis.ClusterClient
	primed  atomic.Bool // the cluster's layout was read once

	mu sync.Mutex
	of map[*redis.Client]*node
}

func (d *Driver) newNode(rdb runner, finder runner, retry time.Duration) *node {
	n := &node{d: d, rdb: rdb, finder: finder, retry: retry}
	n.fly, n.over = n.run, d.life.Done()
	return n
}

// node answers the server of a line.
func (d *Driver) node(ctx context.Context, line string) (*node, error) {
	ns := &d.nodes
	if ns.single != nil {
		return ns.single, nil
	}
	if ns.primed.Load() || ctx.Done() == nil {
		return d.find(line)
	}
	type found struct {
		node *node
		err  error
	}
	got := make(chan found, 1)
	go func() { // the first look reads the layout from a server, which may be silent
		n, err := d.find(line)
		got <- found{n, err}
	}()
	select {
	case f := <-got:
		return f.node, f.err
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}

func (d *Driver) find(line string) (*node, error) {
	ns := &d.nodes
	rdb, err := ns.cluster.MasterForKey(d.life, line)
	if err != nil {
		return nil, classify(err)
	}
	ns.primed.Store(true)
	ns.mu.Lock()
	defer ns.mu.Unlock()
	n := ns.of[rdb]
	if n == nil {
		n = d.newNode(rdb, ns.cluster, retryFloor(rdb.Options()))
		ns.of[rdb] = n
	}
	return n, nil
}

// retryFloor is how long a call takes at least if the client library has sent it
// again by itself.
func retryFloor(o *redis.Options) time.Duration {
	if o.MaxRetries <= 0 {
		return 0
	}
	return max(o.MinRetryBackoff, time.Millisecond)
}

// How a pipeline carries scripts.
const (
	byName    = iota // by name: the server knows them
	onceWhole        // the first call of each script with its source
	allWhole         // every call with its source
)

// run sends calls in one pipeline and sets their results. Scripts the server does not
// know are sent once more, each once whole; where it has forgotten them again by then,
// each call whole.
func (n *node) run(calls []*call) {
	ctx := n.d.life
	began := time.Now()
	f, err := n.flavour(ctx)
	if err != nil {
		for _, c := range calls {
			c.err = err
		}
		return
	}
	for left, how := calls, byName; len(left) > 0 && how <= allWhole; how++ {
		cmds := n.send(ctx, f, left, how)
		var again []*call
		for i, c := range left {
			if c.reply, c.err = cmds[i].Val(), cmds[i].Err(); code(c.err) == "NOSCRIPT" {
				again = append(again, c)
			}
		}
		left = again
	}
	slow := n.retry > 0 && time.Since(began) >= n.retry
	for _, c := range calls {
		if n.finder == nil {
			c.err = elsewhere(c.err)
		} else if moved(c.err) {
			n.follow(ctx, f, c)
		}
		c.slow = slow || n.finder != nil && c.slow
		if c.err == redis.Nil { //nolint:errorlint // go-redis answers it as it is
			c.err = nil
		}
		c.err = classify(c.err)
	}
}

// send is one pipeline.
func (n *node) send(ctx context.Context, f flavour, calls []*call, how int) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(calls))
	counts := false
	for i, c := range calls {
		whole := how == allWhole || how == onceWhole && !slices.ContainsFunc(calls[:i], func(before *call) bool {
			return before.script == c.script
		})
		cmds[i] = c.command(ctx, f, whole)
		counts = counts || c.counts
	}
	if counts && n.d.opts.Replicas > 0 {
		n.confirmed(ctx, calls, cmds)
		return cmds
	}
	if len(cmds) == 1 {
		_ = n.rdb.Process(ctx, cmds[0]) // the command has the error
		return cmds
	}
	pipe := n.rdb.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	return cmds
}

// confirmed sends the pipeline and has the same connection wait for the replicas.
func (n *node) confirmed(ctx context.Context, calls []*call, cmds []*redis.Cmd) {
	pipe := n.rdb.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	wait := redis.NewIntCmd(ctx, "wait", n.d.opts.Replicas, n.d.opts.ReplicaTimeout.Milliseconds())
	_ = pipe.Process(ctx, wait)
	_, _ = pipe.Exec(ctx)
	if wait.Err() == nil && wait.Val() >= int64(n.d.opts.Replicas) {
		return
	}
	err := wait.Err()
	if err == nil {
		err = tooFewError{got: wait.Val(), want: n.d.opts.Replicas}
	}
	for i, c := range calls {
		if c.counts && cmds[i].Err() == nil {
			cmds[i].SetErr(unavailable(err))
		}
	}
}

// follow sends one call again through the cluster's client, which finds its master.
func (n *node) follow(ctx context.Context, f flavour, c *call) {
	c.slow = true
	for _, load := range []bool{false, true} {
		cmd := c.command(ctx, f, load)
		_ = n.finder.Process(ctx, cmd)
		c.reply, c.err = cmd.Val(), cmd.Err()
		if code(c.err) != "NOSCRIPT" {
			return
		}
	}
}

// command makes the call's command, with the source or by name.
func (c *call) command(ctx context.Context, f flavour, load bool) *redis.Cmd {
	args := make([]any, 3, 3+len(c.args))
	args[0], args[1], args[2] = "evalsha", c.script.sha[f], c.keys
	if load {
		args[0], args[1] = "eval", c.script.source[f]
	}
	cmd := redis.NewCmd(ctx, append(args, c.args...)...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

// call runs one script on the server of its first key.
func (d *Driver) call(ctx context.Context, c *call) error {
	if err := ctx.Err(); err != nil {
		return ended(ctx)
	}
	if d.life.Err() != nil {
		return unavailable(errClosed)
	}
	line, _ := c.args[0].(string)
	n, err := d.node(ctx, line)
	if err != nil {
		return err
	}
	return n.do(ctx, c)
}

package redislease

import (
	"context"
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
	n.fly, n.over, n.start, n.limit = n.run, d.life.Done(), d.background, maxFlights
	return n
}

// byLanes has the node's flights go by lanes of their own, where a client like c can be
// made. They are no more than c would have connections.
func (n *node) byLanes(c *redis.Client) *node {
	if !canLane(c) {
		return n
	}
	n.retry = 0 // a lane sends once
	n.laned = true
	n.lanes = func() *lane { return newLane(c, n.d.longestRead(c)) }
	n.limit = min(maxFlights, c.Options().PoolSize)
	if active := c.Options().MaxActiveConns; active > 0 {
		n.limit = min(n.limit, active)
	}
	return n
}

// close gives the connections up that were the driver's own.
func (ns *nodes) close() {
	if ns.single != nil {
		ns.single.close()
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	for _, n := range ns.of {
		n.close()
	}
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
		n = d.newNode(rdb, ns.cluster, retryFloor(rdb.Options())).byLanes(rdb)
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

// run sends calls and sets their results.
func (n *node) run(calls []*call, l *lane) {
	ctx, rdb := n.d.life, n.rdb
	if l != nil {
		rdb = l.rdb
	}
	began := time.Now()
	f, err := n.flavour(ctx, rdb)
	if err != nil {
		for _, c := range calls {
			c.err = err
		}
		return
	}
	n.exchange(ctx, rdb, f, calls)
	slow := n.retry > 0 && time.Since(began) >= n.retry
	for _, c := range calls {
		if n.finder == nil {
			c.err = elsewhere(c.err)
		} else if moved(c.err) {
			n.follow(ctx, f, c, l)
		}
		c.slow = slow || n.finder != nil && c.slow
		if c.err == redis.Nil { //nolint:errorlint // go-redis answers it as it is
			c.err = nil
		}
		c.err = classify(c.err)
	}
}

// follow sends one call again through the cluster's client, which finds its master.
// That client cannot be cut; the flight can.
func (n *node) follow(ctx context.Context, f flavour, c *call, l *lane) {
	c.slow = true
	var cut <-chan struct{}
	if l != nil {
		cut = l.ended()
	}
	got := make(chan *post, 1)
	go func() {
		for _, whole := range []bool{false, true} {
			p := &post{script: c.script, calls: []*call{c}}
			p.make(ctx, f, whole)
			if _ = n.finder.Process(ctx, p.cmd); whole || code(p.cmd.Err()) != "NOSCRIPT" {
				got <- p
				return
			}
		}
	}()
	select {
	case p := <-got:
		p.deliver()
	case <-cut:
		c.reply, c.err = nil, errCut
	}
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

package proxy

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// Way is a direction, or both.
type Way uint8

// The directions.
const (
	ToServer Way = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// Proxy forwards connections to one server.
type Proxy struct {
	listener net.Listener
	tasks    sync.WaitGroup

	mu     sync.Mutex
	target string
	closed bool
	shut   bool // refuses new connections
	held   Way  // what new connections begin with
	lost   Way
	delay  time.Duration
	rules  []*Rule
	conns  map[*Conn]struct{}
	made   int
}

// New makes a proxy on a free port of the loopback interface.
func New(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, conns: make(map[*Conn]struct{})}
	p.tasks.Go(p.accept)
	return p, nil
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close cuts all connections and returns when nothing runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	if again {
		return nil
	}
	err := p.listener.Close()
	p.Cut()
	p.tasks.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.tasks.Go(func() { p.serve(client) })
		}
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	refuse, target := p.shut || p.closed, p.target
	p.mu.Unlock()
	if refuse {
		reset(client)
		return
	}
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		reset(client)
		return
	}
	c := newConn(p, client, server)
	p.mu.Lock()
	if p.closed || p.shut {
		p.mu.Unlock()
		c.Cut()
		return
	}
	p.made++
	c.set(p.held, p.lost, p.delay)
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	c.run()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// Conns answers the connections that are open, oldest first.
func (p *Proxy) Conns() []*Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := make([]*Conn, 0, len(p.conns))
	for c := range p.conns {
		open = append(open, c)
	}
	slices.SortFunc(open, func(a, b *Conn) int { return a.opened.Compare(b.opened) })
	return open
}

// Made is how many connections were made so far.
func (p *Proxy) Made() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made
}

// Cut resets every connection. New ones are accepted.
func (p *Proxy) Cut() {
	for _, c := range p.Conns() {
		c.Cut()
	}
}

// Redirect lets new connections go to another server, and resets those that are open.
func (p *Proxy) Redirect(target string) error {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return err
	}
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.Cut()
	return nil
}

// Refuse makes the server seem down: every connection, and each new one, is reset.
func (p *Proxy) Refuse() (again func()) {
	p.setShut(true)
	p.Cut()
	return func() { p.setShut(false) }
}

func (p *Proxy) setShut(shut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = shut
}

// Hold makes every connection, and each new one, silent without an error. What was
// held arrives late, after release, as after a network's partition.
func (p *Proxy) Hold(way Way) (release func()) {
	p.change(func() { p.held |= way })
	return func() { p.change(func() { p.held &^= way }) }
}

// Swallow is Hold, but what is sent meanwhile never arrives: a connection that lost
// something is reset when this ends.
func (p *Proxy) Swallow(way Way) (end func()) {
	p.change(func() { p.lost |= way })
	return func() {
		p.change(func() { p.lost &^= way })
		for _, c := range p.Conns() {
			if c.hasLost() {
				c.Cut()
			}
		}
	}
}

// Slow delays everything in both directions by that much; 0 ends it.
func (p *Proxy) Slow(delay time.Duration) { p.change(func() { p.delay = delay }) }

// change changes what holds for all connections.
func (p *Proxy) change(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what()
	for c := range p.conns {
		c.set(p.held, p.lost, p.delay)
	}
}

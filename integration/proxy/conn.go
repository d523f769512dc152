package proxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is one connection through the proxy.
type Conn struct {
	proxy          *Proxy
	client, server net.Conn
	opened         time.Time
	over           chan struct{}
	once           sync.Once
	reply          atomic.Pointer[Rule] // what happens to the next reply

	mu      sync.Mutex
	held    Way // for all
	own     Way // for this one
	lost    Way
	spoiled Way // what was lost already
	delay   time.Duration
	changed chan struct{} // closed and made anew by each change
}

func newConn(p *Proxy, client, server net.Conn) *Conn {
	return &Conn{
		proxy: p, client: client, server: server, opened: time.Now(),
		over: make(chan struct{}), changed: make(chan struct{}),
	}
}

// Cut resets the connection on both sides.
func (c *Conn) Cut() {
	c.once.Do(func() {
		close(c.over)
		reset(c.client)
		reset(c.server)
	})
}

// reset closes so that the other side gets an error, not an end.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// Hold makes this connection silent until release.
func (c *Conn) Hold(way Way) (release func()) {
	c.change(func() { c.own |= way })
	return func() { c.change(func() { c.own &^= way }) }
}

func (c *Conn) set(held, lost Way, delay time.Duration) {
	c.change(func() { c.held, c.lost, c.delay = held, lost, delay })
}

func (c *Conn) change(what func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what()
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Conn) hasLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spoiled != 0
}

// run forwards in both directions until one of them ends.
func (c *Conn) run() {
	var both sync.WaitGroup
	both.Go(func() { c.forward(ToServer, c.client, c.server) })
	both.Go(func() { c.forward(ToClient, c.server, c.client) })
	both.Wait()
}

// piece is what was read at once, and when it may be written at the earliest.
type piece struct {
	data []byte
	due  time.Time
}

// forward reads at once and writes when it may, so that a delay does not narrow the
// connection.
func (c *Conn) forward(way Way, from, to net.Conn) {
	pieces := make(chan piece, 1024)
	var writing sync.WaitGroup
	writing.Go(func() { c.write(way, to, pieces) })
	c.read(way, from, pieces)
	close(pieces)
	writing.Wait() // what is under way still arrives, and an end behind a held one does not
	c.Cut()
}

func (c *Conn) read(way Way, from net.Conn, pieces chan<- piece) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p, ok := c.receive(way, buf[:n])
			if !ok {
				return
			}
			select {
			case pieces <- p:
			case <-c.over:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// receive makes a piece of what was read, and lets the rules have it.
func (c *Conn) receive(way Way, data []byte) (_ piece, ok bool) {
	c.mu.Lock()
	p := piece{data: append([]byte(nil), data...), due: time.Now().Add(c.delay)}
	c.mu.Unlock()
	if way == ToServer {
		r := c.proxy.ruleFor(data)
		if r == nil {
			return p, true
		}
		if r.Fault == ResetRequest {
			close(r.done)
			c.Cut()
			return p, false
		}
		c.reply.Store(r)
		return p, true
	}
	r := c.reply.Swap(nil)
	if r == nil {
		return p, true
	}
	defer close(r.done)
	switch r.Fault {
	case DropReply:
		c.Cut()
		return p, false
	case SwallowReply:
		p.data = nil
		c.change(func() { c.own |= ToClient })
	case DelayReply:
		p.due = p.due.Add(r.Delay)
	case ResetRequest:
	}
	return p, true
}

func (c *Conn) write(way Way, to net.Conn, pieces <-chan piece) {
	for p := range pieces {
		if !c.wait(way, p.due) {
			continue
		}
		if _, err := to.Write(p.data); err != nil {
			c.Cut()
		}
	}
}

// wait waits until a piece may pass. It answers false where the piece is lost.
func (c *Conn) wait(way Way, due time.Time) bool {
	for {
		c.mu.Lock()
		held, changed := (c.held|c.own)&way != 0, c.changed
		lost := c.lost&way != 0
		if lost {
			c.spoiled |= way
		}
		c.mu.Unlock()
		if lost {
			return false
		}
		rest := time.Until(due)
		if !held && rest <= 0 {
			return true
		}
		var timer <-chan time.Time
		if !held {
			timer = time.After(rest)
		}
		select {
		case <-timer:
		case <-changed:
		case <-c.over:
			return false
		}
	}
}

package redislease

import (
	"context"
	"errors"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// lane is a client of one connection, for one flight at a time. go-redis does not stop
// reading a socket when a context ends; the connection of a lane can be cut from outside,
// so a caller may wait for its answer himself, on his own goroutine.
type lane struct {
	rdb *redis.Client

	mu    sync.Mutex
	conns map[*laneConn]struct{} // open ones
	isCut bool                   // the flight under way
	cut   chan struct{}          // closed with it
}

var errCut = errors.New("the connection was cut: nobody waits for the answer any more")

// canLane reports whether a client like c can be made. One with hooks would lack them,
// one of Sentinel would not learn of a failover from the sentinels, and where making a
// connection is partly the user's own code, cutting it would not end that.
func canLane(c *redis.Client) bool {
	o := c.Options()
	own := o.OnConnect != nil || o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil
	hooks, known := hooksOf(c)
	return known && len(hooks) == 0 && !own && o.Addr != "FailoverClient" && o.Dialer != nil
}

// hooksOf answers the hooks of a client. go-redis tells nobody, so the field is read in
// which it has them: up to 9.21 one of the client, then one behind an atomic pointer. known
// is false if there is no such field.
func hooksOf(c *redis.Client) (hooks []redis.Hook, known bool) {
	has := reflect.ValueOf(c).Elem()
	if state := has.FieldByName("state"); state.Kind() == reflect.Pointer && !state.IsNil() {
		load := reflect.NewAt(state.Type().Elem(), state.UnsafePointer()).MethodByName("Load")
		if !load.IsValid() {
			return nil, false
		}
		if has = load.Call(nil)[0]; has.Kind() != reflect.Pointer || has.IsNil() {
			return nil, false
		}
		has = has.Elem()
	}
	field := has.FieldByName("slice")
	if !field.IsValid() || !field.CanAddr() {
		return nil, false
	}
	list, known := reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Interface().(*[]redis.Hook)
	if !known {
		return nil, false
	}
	return *list, true
}

// newLane makes a client with the options of c. It connects when it is first used.
func newLane(c *redis.Client, read time.Duration) *lane {
	l := &lane{conns: make(map[*laneConn]struct{}), cut: make(chan struct{})}
	o := *c.Options()
	o.Dialer = l.dialer(o.Dialer)
	o.MaxRetries = -1 // none: the store would have to remember each ID then
	o.ReadTimeout, o.WriteTimeout = read, read
	o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 0, 0, 0
	// Not the processor of the user's client, which takes no second client. Older go-redis has none.
	if own := reflect.ValueOf(&o).Elem().FieldByName("PushNotificationProcessor"); own.IsValid() {
		own.SetZero()
	}
	l.rdb = redis.NewClient(&o)
	return l
}

// begin makes the lane ready for a flight.
func (l *lane) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		l.drop(false)
		l.isCut, l.cut = false, make(chan struct{})
	}
}

// drop closes connections that failed, or all. go-redis 9.22 forgets to close one that is
// cut while it logs in. l.mu is held.
func (l *lane) drop(all bool) {
	for c := range l.conns {
		if all || c.failed.Load() {
			_ = c.Conn.Close()
			delete(l.conns, c)
		}
	}
}

// close gives the lane up.
func (l *lane) close() {
	_ = l.rdb.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(true)
}

// end cuts the flight under way: what it waits for fails at once.
func (l *lane) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return
	}
	l.isCut = true
	close(l.cut)
	for c := range l.conns {
		_ = c.Conn.SetDeadline(time.Now())
	}
}

// ended is closed when the flight under way is cut.
func (l *lane) ended() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer makes the connections of another dialer ones that can be cut, also while they
// are made.
func (l *lane) dialer(dial dialer) dialer {
	type dialled struct {
		conn net.Conn
		err  error
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		got := make(chan dialled, 1)
		go func() {
			conn, err := dial(ctx, network, addr)
			got <- dialled{conn, err}
		}()
		select {
		case g := <-got:
			if g.err != nil {
				return nil, g.err
			}
			return l.add(g.conn), nil
		case <-l.ended():
			go func() {
				if g := <-got; g.err == nil {
					_ = g.conn.Close()
				}
			}()
			return nil, errCut
		}
	}
}

func (l *lane) add(conn net.Conn) net.Conn {
	c := &laneConn{Conn: conn, lane: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	if sys, ok := conn.(syscall.Conn); ok {
		return laneSysConn{c, sys}
	}
	return c
}

// laneConn is a connection of a lane. Once its flight is cut, no deadline moves any more.
type laneConn struct {
	net.Conn

	lane   *lane
	read   time.Time // when something came last; of the flight's goroutine
	failed atomic.Bool
}

// Read implements net.Conn.
func (c *laneConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.failed.Store(true)
	} else {
		c.read = time.Now()
	}
	return n, err
}

// Write implements net.Conn.
func (c *laneConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// laneSysConn lets go-redis look whether an idle connection was closed by the server. It
// does so before every command, which costs a system call.
type laneSysConn struct {
	*laneConn

	sys syscall.Conn
}

// fresh is for how long a connection on which something came is not looked at.
const fresh = time.Second

// SyscallConn implements syscall.Conn.
func (c laneSysConn) SyscallConn() (syscall.RawConn, error) {
	if time.Since(c.read) < fresh {
		return unseen{}, nil
	}
	return c.sys.SyscallConn()
}

// unseen is a connection that nobody looks at.
type unseen struct{}

// Control implements syscall.RawConn.
func (unseen) Control(func(uintptr)) error { return nil }

// Read implements syscall.RawConn.
func (unseen) Read(func(uintptr) bool) error { return nil }

// Write implements syscall.RawConn.
func (unseen) Write(func(uintptr) bool) error { return nil }

// SetDeadline implements net.Conn.
func (c *laneConn) SetDeadline(t time.Time) error { return c.set(c.Conn.SetDeadline, t) }

// SetReadDeadline implements net.Conn.
func (c *laneConn) SetReadDeadline(t time.Time) error { return c.set(c.Conn.SetReadDeadline, t) }

// SetWriteDeadline implements net.Conn.
func (c *laneConn) SetWriteDeadline(t time.Time) error { return c.set(c.Conn.SetWriteDeadline, t) }

func (c *laneConn) set(deadline func(time.Time) error, t time.Time) error {
	c.lane.mu.Lock()
	defer c.lane.mu.Unlock()
	if c.lane.isCut {
		c.failed.Store(true)
		return errCut
	}
	return deadline(t)
}

// Close implements net.Conn.
func (c *laneConn) Close() error {
	c.lane.mu.Lock()
	delete(c.lane.conns, c)
	c.lane.mu.Unlock()
	return c.Conn.Close()
}

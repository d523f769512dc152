package redislease_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

// counter is a hook that counts what passes it.
type counter struct{ commands, pipelines atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.pipelines.Add(1)
		return next(ctx, cmds)
	}
}

// dialled counts the connections a dialer has made and not closed.
type dialled struct {
	mu        sync.Mutex
	now, most int
	silent    chan struct{} // closed: dialling never ends
}

func (d *dialled) count(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now += n
	d.most = max(d.most, d.now)
}

func (d *dialled) open() (now, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now, d.most
}

type countedConn struct {
	net.Conn

	once sync.Once
	of   *dialled
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.of.count(-1) })
	return c.Conn.Close()
}

func (d *dialled) dialer(ctx context.Context, network, addr string) (net.Conn, error) {
	select {
	case <-d.silent:
		<-ctx.Done()
		return nil, ctx.Err()
	default:
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.count(1)
	return &countedConn{Conn: conn, of: d}, nil
}

// The hooks of the user's client see hasp's commands: tracing and metrics go on.
func TestHooksSeeEveryCommand(t *testing.T) {
	t.Parallel()
	rdb := sharedServer(t).client(t)
	seen := &counter{}
	rdb.AddHook(seen)
	p := newParty(t, rdb, nil)
	x := p.claim(newKey())
	p.joins(&x, driver.Holding)
	before := seen.commands.Load()
	p.leaves(&x, driver.Left)
	if before == 0 || seen.commands.Load() == before {
		t.Errorf("the hook saw %d commands, and then %d", before, seen.commands.Load())
	}
}

// However silent a server is, calls share four connections; those nobody waits for any
// more are closed, and the next call finds a new one.
func TestG8_ASilentServerCostsFourConnections(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	made := &dialled{silent: make(chan struct{})}
	p := newParty(t, s.client(t, func(o *redis.Options) { o.Dialer = made.dialer }), nil)
	x := p.claim(newKey())
	p.joins(&x, driver.Holding)
	resume, err := s.pause()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	stop := time.Now().Add(3500 * time.Millisecond)
	for i := range 24 {
		all.Go(func() {
			for time.Now().Before(stop) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(300+20*i)*time.Millisecond)
				_, err := p.Join(ctx, driver.Join{Claim: p.claim(newKey())})
				cancel()
				if !errors.Is(err, driver.ErrUnavailable) {
					t.Errorf("join on a silent socket: %v", err)
				}
			}
		})
	}
	all.Wait()
	if _, most := made.open(); most > 4 {
		t.Errorf("%d connections at a time, want at most 4", most)
	}
	resume()
	p.renews(&x, driver.Holding)
	p.leaves(&x, driver.Left)
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		now, _ := made.open()
		if now == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections are left after Close", now)
		}
	}
}

// A dialer of the user's is used, and one that does not end holds no call up.
func TestCallsReturnWhileConnectionsAreMade(t *testing.T) {
	t.Parallel()
	made := &dialled{silent: make(chan struct{})}
	p := newParty(t, sharedServer(t).client(t, func(o *redis.Options) { o.Dialer = made.dialer }), nil)
	x := p.claim(newKey())
	p.joins(&x, driver.Holding)
	if now, _ := made.open(); now == 0 {
		t.Error("the user's dialer was not asked")
	}
	p.leaves(&x, driver.Left)

	close(made.silent)
	for what, set := range map[string]func(*redis.Options){
		"a dialer": func(o *redis.Options) { o.Dialer = made.dialer },
		"an OnConnect": func(o *redis.Options) {
			o.OnConnect = func(context.Context, *redis.Conn) error { <-t.Context().Done(); return nil }
		},
		"a provider": func(o *redis.Options) {
			o.CredentialsProvider = func() (string, string) { <-t.Context().Done(); return "", "" }
		},
	} {
		q := newParty(t, sharedServer(t).client(t, set, patient), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		_, err := q.Join(ctx, driver.Join{Claim: q.claim(newKey())})
		cancel()
		if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s that does not end: %v", what, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s that does not end: it took %v", what, took)
		}
	}
}

// Close ends a call whose caller would wait on.
func TestCloseCutsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := newParty(t, s.client(t, patient), nil)
	x := p.claim(newKey())
	p.joins(&x, driver.Holding)
	resume, err := s.pause()
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	failed := make(chan error, 1)
	go func() {
		_, err := p.Leave(context.WithoutCancel(t.Context()), driver.Leaving{Ref: x.Ref})
		failed <- err
	}()
	time.Sleep(50 * time.Millisecond) // it is under way, or finds the driver closed
	began := time.Now()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("leave: %v", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

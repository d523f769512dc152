package redislease_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
)

// A full server takes no new claims, but whoever holds goes on and leaves.
func TestAFullServerStillRenewsAndReleases(t *testing.T) {
	t.Parallel()
	rdb := startServer(t).client(t)
	p := newParty(t, rdb, nil)
	ctx := t.Context()
	alone, h, w, r := p.claim(newKey()), p.claim(newKey()), p.claim(), p.claim(newKey())
	w.Keys, r.Capacity = h.Keys, 3
	p.joins(&alone, driver.Holding)
	p.joins(&h, driver.Holding)
	p.joins(&w, driver.Waiting)
	p.joins(&r, driver.Holding)
	p.renews(&alone, driver.Holding)
	p.renews(&h, driver.Holding)
	if err := rdb.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Join(ctx, driver.Join{Claim: p.claim(newKey())}); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("Join on a full server: %v, want ErrRefused", err)
	}
	p.renews(&alone, driver.Holding)
	if _, err := p.renew(&h); isOld(t, rdb) && errors.Is(err, driver.ErrRefused) {
		p.leaves(&alone, driver.Left)
		return // what the package's documentation says of Redis 6.2
	}
	for _, c := range []*driver.Claim{&h, &r} {
		p.renews(c, driver.Holding)
	}
	p.renews(&w, driver.Waiting)
	p.leaves(&h, driver.Left)
	p.renews(&w, driver.Holding)
	for _, c := range []*driver.Claim{&alone, &w, &r} {
		p.leaves(c, driver.Left)
	}
}

// isOld says whether the server is a Redis 6.
func isOld(t *testing.T, rdb *redis.Client) bool {
	t.Helper()
	info, err := rdb.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(info, "redis_version:6.")
}

// user makes a user with these rights and answers a client of it.
func user(t *testing.T, s *server, rights string) *redis.Client {
	t.Helper()
	args := []any{"acl", "setuser", "hasp", "reset"}
	for r := range strings.FieldsSeq(rights) {
		args = append(args, r)
	}
	args = append(args, "on", ">secret")
	if err := s.client(t).Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	return s.client(t, func(o *redis.Options) { o.Username, o.Password = "hasp", "secret" })
}

// A user without channel rights has working locks, found by looking, and is told once.
func TestWithoutChannelRightsTheLineMovesOn(t *testing.T) {
	t.Parallel()
	rdb := user(t, startServer(t), "~hasp* resetchannels +@all -@dangerous +info")
	var mu sync.Mutex
	var warnings []string
	p := newParty(t, rdb, &redislease.Options{Warn: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, err.Error())
	}})
	for range 2 {
		if err := p.Check(t.Context()); err != nil {
			t.Fatal("Check:", err)
		}
	}
	mu.Lock()
	if len(warnings) != 1 || !strings.Contains(warnings[0], "NOPERM") {
		t.Errorf("warned of %q, want the missing right, once", warnings)
	}
	mu.Unlock()
	a, b := p.claim(newKey()), p.claim()
	b.Keys = a.Keys
	p.joins(&a, driver.Holding)
	p.joins(&b, driver.Waiting)
	p.leaves(&a, driver.Left)
	p.leaves(&a, driver.Gone)
	p.renews(&b, driver.Holding)
}

// The state has changed by then, so the refusal is no error; but it is not kept secret.
func TestARefusedSignalOfAStepIsToldOnce(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int64{1, 2} { // a list, sorted sets
		s := startServer(t)
		rdb := user(t, s, "~hasp* allchannels +@all -@dangerous +info +client")
		var mu sync.Mutex
		var told []error
		p := newParty(t, rdb, &redislease.Options{Warn: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, err)
		}})
		if err := p.Check(t.Context()); err != nil {
			t.Fatal("Check:", err)
		}
		if err := s.client(t).Do(t.Context(), "acl", "setuser", "hasp", "resetchannels").Err(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			a, b := p.claim(newKey()), p.claim()
			b.Keys, a.Weight, b.Weight, a.Capacity, b.Capacity = a.Keys, capacity, capacity, capacity, capacity
			p.joins(&a, driver.Holding)
			p.joins(&b, driver.Waiting)
			p.leaves(&a, driver.Left)
			p.renews(&b, driver.Holding)
			p.leaves(&b, driver.Left)
		}
		mu.Lock()
		if len(told) != 1 || !strings.Contains(told[0].Error(), "refuses what this user publishes") {
			t.Errorf("capacity %d: told %q, want the refused signals, once", capacity, told)
		}
		mu.Unlock()
	}
}

func TestMissingRightsAreNamed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, c := range []struct{ rights, named string }{
		{"~hasp* allchannels +@all -evalsha", "evalsha"},
		{"~other* allchannels +@all", "key"},
		{"~hasp* allchannels +@all -zadd", "zadd"},
		{"~hasp* allchannels +@all -pexpireat -hget", "pexpireat, hget"},
	} {
		p := newParty(t, user(t, s, c.rights), nil)
		err := p.Check(t.Context())
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), c.named) {
			t.Errorf("rights %q: Check: %v, want ErrRefused and %q", c.rights, err, c.named)
		}
	}
}

func TestCheckRefusesWhatCannotKeepLocks(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	rdb := s.client(t)
	ctx := t.Context()
	p := newParty(t, rdb, nil)
	if err := p.Check(ctx); err != nil {
		t.Error(err)
	}
	_ = rdb.ConfigSet(ctx, "maxmemory-policy", "volatile-lru").Err()
	if err := p.Check(ctx); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "volatile-lru") {
		t.Errorf("Check of an evicting server: %v", err)
	}
	if err := newParty(t, rdb, &redislease.Options{AllowEviction: true}).Check(ctx); err != nil {
		t.Errorf("Check with AllowEviction: %v", err)
	}
	_ = rdb.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err()
	host, port, _ := strings.Cut(sharedServer(t).addr, ":")
	if err := rdb.SlaveOf(ctx, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	if err := p.Check(ctx); !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "replica") {
		t.Errorf("Check of a replica: %v", err)
	}
	_ = rdb.SlaveOf(ctx, "no", "one").Err()
	if err := p.Check(ctx); err != nil {
		t.Errorf("Check after it became a master again: %v", err)
	}
}

func TestNewFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	for what, d := range map[string]*redislease.Driver{
		"no client":      redislease.New(nil, nil),
		"a nil client":   redislease.New((*redis.Client)(nil), nil),
		"a ring":         redislease.New(ring, nil),
		"a brace":        redislease.New(rdb, &redislease.Options{Slot: "a}b"}),
		"replicas":       redislease.New(rdb, &redislease.Options{Replicas: -1}),
		"a short answer": redislease.New(rdb, &redislease.Options{ReplicaTimeout: time.Microsecond}),
	} {
		err := d.Features().Err
		if !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
		c := driver.Claim{Ref: driver.Ref{Keys: []string{"k"}}, Weight: 1, Capacity: 1, Life: life}
		if _, err := d.Join(t.Context(), driver.Join{Claim: c}); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: Join answers %v", what, err)
		}
	}
	if err := redislease.New(rdb, nil).Features().Err; err != nil {
		t.Error(err)
	}
}

// Whatever the user's client waits, calls end with their context, and what they were
// waiting for does not stay.
func TestCallsReturnOnASilentSocket(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for what, set := range map[string]func(*redis.Options){
		"defaults":       func(*redis.Options) {},
		"no timeout":     func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -1, -1 },
		"long":           func(o *redis.Options) { patient(o); o.MaxRetries = 10 },
		"context":        func(o *redis.Options) { patient(o); o.ContextTimeoutEnabled = true },
		"one connection": func(o *redis.Options) { patient(o); o.PoolSize = 1 },
		// The calls of these go by the user's pool.
		"hooked": patient,
		"code of its own": func(o *redis.Options) {
			patient(o)
			o.OnConnect = func(context.Context, *redis.Conn) error { return nil }
		},
	} {
		rdb := s.client(t, set)
		if what == "hooked" {
			rdb.AddHook(&counter{})
		}
		p := newParty(t, rdb, nil)
		x := p.claim(newKey())
		p.joins(&x, driver.Holding)
		resume, err := s.pause()
		if err != nil {
			t.Fatal(err)
		}
		for name, call := range map[string]func(ctx context.Context) error{
			"Join":  func(ctx context.Context) error { return second(p.Join(ctx, driver.Join{Claim: p.claim(newKey())})) },
			"Leave": func(ctx context.Context) error { return second(p.Leave(ctx, driver.Leaving{Ref: p.claim("k").Ref})) },
			"Lines": func(ctx context.Context) error { return second(p.Lines(ctx, driver.Query{Prefix: "test:"})) },
			"Check": p.Check,
			"Renew": func(ctx context.Context) (err error) {
				item := driver.Renewal{Ref: x.Ref, Mode: driver.Extend, Life: life}
				p.Renew(ctx, []driver.Renewal{item, item}, func(_ int, _ driver.Standing, e error) { err = e })
				return err
			},
		} {
			for range 3 { // more than fly at once, so that some queue
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(20*time.Millisecond, cancel)
				begin := time.Now()
				err := call(ctx)
				if took := time.Since(begin); took > 20*time.Second {
					t.Errorf("%s: %s took %v", what, name, took)
				}
				if !errors.Is(err, driver.ErrUnavailable) {
					t.Errorf("%s: %s on a silent socket: %v", what, name, err)
				}
			}
		}
		resume()
		p.renews(&x, driver.Holding)
		p.leaves(&x, driver.Left)
	}
}

func second[T any](_ T, err error) error { return err }

// 200 claims of 64 goroutines use few connections, and Close leaves nothing behind.
//
//nolint:paralleltest // it counts goroutines
func TestNothingIsLeftBehind(t *testing.T) {
	s := startServer(t)
	rdb := s.client(t, func(o *redis.Options) { o.PoolSize = 64 })
	control := s.client(t)
	before := runtime.NumGoroutine()
	d := redislease.New(rdb, nil)
	p := &party{Driver: d, tb: t, inbox: [6]byte{1}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	hears := make(chan struct{}, 1)
	go func() {
		ended <- d.Listen(ctx, p.inbox, func(driver.Signal) {
			select {
			case hears <- struct{}{}:
			default:
			}
		})
	}()
	<-hears
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 20 {
				a := p.claim(newKey())
				p.joins(&a, driver.Holding)
				p.leaves(&a, driver.Left)
			}
		})
	}
	wg.Wait()
	stats := rdb.PoolStats()
	if stats.TotalConns > 8 {
		t.Errorf("%d connections, want at most 4 at a time and the push connection", stats.TotalConns)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Listen: %v", err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		subscribed := control.PubSubChannels(t.Context(), "hasp:*").Val()
		now := runtime.NumGoroutine()
		if len(subscribed) == 0 && now <= before+2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left: channels %q, %d goroutines, were %d", subscribed, now, before)
		}
	}
}

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/proxy"
	"github.com/hasp-dev/hasp/integration/servers"
	"github.com/hasp-dev/hasp/integration/stores"
)

func TestMain(m *testing.M) {
	crew.Main()
	flag.Parse()
	if !set("test.parallel") {
		// The tests mostly wait, for a TTL to run out or a server to start.
		_ = flag.Set("test.parallel", strconv.Itoa(slower(8, 4)))
	}
	os.Exit(m.Run())
}

func set(name string) (yes bool) {
	flag.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
}

// soaking says that long checks run in full: make soak.
func soaking() bool { return os.Getenv("HASP_SOAK") == "1" }

// rounds is a number of rounds: all in a soak, a tenth with -short.
func rounds(usual, soak int) int {
	switch {
	case soaking():
		return soak
	case testing.Short():
		return max(usual/10, 1)
	}
	return usual
}

// soon bounds what should take no time at all, on a machine that does much else.
const soon = 30 * time.Second

// brief is less than what ends a claim by itself: without a renewal one that waits lives
// 6 s, and one that holds 10 s, where a test says nothing else. What is gone by then was
// taken away.
const brief = 4 * time.Second

// prompt is what "at once" takes. No poll and no expiry in these tests is as quick, so
// what is prompt was told.
const prompt = time.Second

// promptly wants something to take no longer than a time, in one of some tries: a machine
// that does much else is late now and then, and what has to wait for a poll is so always.
func promptly(t testing.TB, within time.Duration, what string, try func() time.Duration) {
	t.Helper()
	var took []time.Duration
	for range 10 {
		took = append(took, try())
		if took[len(took)-1] <= within {
			return
		}
	}
	t.Errorf("%s took %s, want one of %s", what, took, within)
}

// slower answers the second under the race detector.
func slower[T any](usual, race T) T {
	if underRace {
		return race
	}
	return usual
}

// kind is a kind of store.
type kind struct {
	name  string
	start func(t *testing.T) *store
}

// store is one that was started for a test.
type store struct {
	name   string
	addr   string         // for clients
	server server         // nil: there is none
	host   string         // of the server, as it stands in addr
	redis  *servers.Redis // nil: it is no Redis
	sql    *sql.DB        // nil: it is no SQL server; for the test's own statements
	file   string         // of SQLite
	remain func(ctx context.Context) ([]string, error)
}

// server is what tests do to a server, whatever it is.
type server interface {
	Kill()         // as a crash does
	Start() error  // once more, at the same address, with the data it had
	Pause() error  // it takes what is sent, and answers nothing
	Resume() error // and goes on
}

// kinds are all stores; a check that suits every store runs on each.
func kinds() []kind {
	return []kind{{"redis", startRedis}, {"sqlite", startSQLite}, {"mysql", startMySQL}, {"postgres", startPostgres}}
}

// eachStore runs a check on every store, side by side with other tests.
func eachStore(t *testing.T, check func(t *testing.T, s *store)) {
	t.Helper()
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			check(t, k.start(t))
		})
	}
}

// eachServer runs a check on every store that is reached through a network.
func eachServer(t *testing.T, check func(t *testing.T, s *store)) {
	t.Helper()
	t.Parallel()
	for _, k := range kinds() {
		if k.name == "sqlite" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			check(t, k.start(t))
		})
	}
}

// apart runs a check on every store, side by side, and with no other test: one that needs
// much of the machine.
func apart(t *testing.T, check func(t *testing.T, s *store)) {
	t.Helper()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			check(t, k.start(t))
		})
	}
}

// alone runs a check on every store, one after the other and with no other test: one that
// looks at what is the whole process's.
func alone(t *testing.T, check func(t *testing.T, s *store)) {
	t.Helper()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { check(t, k.start(t)) })
	}
}

func startRedis(t *testing.T) *store {
	t.Helper()
	return onRedis(t, servers.RedisOptions{})
}

func onRedis(t *testing.T, opts servers.RedisOptions) *store {
	t.Helper()
	r := must(servers.StartRedis(opts))(t)
	t.Cleanup(func() { wantNil(t, r.Close()) })
	return storeOf(r)
}

func storeOf(r *servers.Redis) *store {
	return &store{name: "redis", addr: r.URL(), server: r, host: r.Addr, redis: r, remain: func(ctx context.Context) ([]string, error) {
		return r.Admin().Keys(ctx, "*").Result()
	}}
}

func startSQLite(t *testing.T) *store {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hasp.db")
	db := must(sql.Open("sqlite", stores.SQLiteDSN(file)))(t)
	wantNil(t, sqlitelease.Migrate(t.Context(), db, nil))
	t.Cleanup(func() { wantNil(t, db.Close()) })
	return &store{name: "sqlite", addr: "sqlite:" + file, file: file, remain: rowsOf(db)}
}

// rowsOf says which tables of hasp's have rows.
func rowsOf(db *sql.DB) func(ctx context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var left []string
		for _, table := range []string{"hasp_claims", "hasp_sessions", "hasp_lines"} {
			var n int
			if err := db.QueryRowContext(ctx, "select count(*) from "+table).Scan(&n); err != nil {
				return nil, err
			}
			if n > 0 {
				left = append(left, fmt.Sprintf("%d rows in %s", n, table))
			}
		}
		return left, nil
	}
}

// must is for calls that answer a value and an error.
func must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func wantNil(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("unexpected error: %v", err)
	}
}

// wantClass checks the class of an error, "" for none.
func wantClass(t testing.TB, err error, class string) {
	t.Helper()
	if got := crew.Class(err); got != class {
		t.Errorf("error %v is of class %q, want %q", err, got, class)
	}
}

// with adds parameters to the address.
func (s *store) with(params string) *store {
	other := *s
	sign := "?"
	if strings.Contains(s.addr, "?") {
		sign = "&"
	}
	other.addr += sign + params
	return &other
}

// client makes a client, which is closed with the test.
func (s *store) client(t *testing.T, opts ...hasp.Options) *hasp.Client {
	t.Helper()
	c, _ := s.open(t, opts...)
	return c
}

// open is client, with the handle below it.
func (s *store) open(t *testing.T, opts ...hasp.Options) (*hasp.Client, *stores.Opened) {
	t.Helper()
	handle := must(stores.Open(s.addr))(t)
	var o hasp.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Name == "" {
		o.Name = t.Name()
		if len(o.Name) > 100 {
			o.Name = o.Name[:100]
		}
	}
	if o.Lock.LocalHandoffs == 0 {
		o.Lock.LocalHandoffs = -1 // what is judged here is the store: every lock has a claim of its own
	}
	c := must(hasp.New(handle.Driver, &o))(t)
	t.Cleanup(func() {
		// What a test still holds is lost, or expires, with its server.
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond)
		defer stop()
		_ = c.Close(ctx)
		_ = handle.Close()
	})
	return c, handle
}

// driver opens a driver without a client.
func (s *store) driver(t *testing.T) driver.Driver {
	t.Helper()
	handle := must(stores.Open(s.addr))(t)
	t.Cleanup(func() { _ = handle.Close() })
	return handle.Driver
}

// behind puts a proxy before the store's server.
func (s *store) behind(t *testing.T) (*store, *proxy.Proxy) {
	t.Helper()
	p := must(proxy.New(s.host))(t)
	t.Cleanup(func() { wantNil(t, p.Close()) })
	other := *s
	other.addr, other.host = strings.Replace(s.addr, s.host, p.Addr(), 1), p.Addr()
	return &other, p
}

// puppet starts a process that does what it is told.
func (s *store) puppet(t *testing.T, name string, env ...string) *puppet {
	t.Helper()
	p := must(crew.StartPuppet(name, s.addr, env...))(t)
	t.Cleanup(p.Kill)
	return &puppet{t, p}
}

// puppet fails its test where it cannot do what it should.
type puppet struct {
	t *testing.T
	*crew.Puppet
}

// begin gives an order.
func (p *puppet) begin(o crew.Order) <-chan crew.Answer {
	p.t.Helper()
	return must(p.Begin(o))(p.t)
}

// do gives an order and waits for the answer.
func (p *puppet) do(o crew.Order) crew.Answer {
	p.t.Helper()
	return p.wait(p.begin(o), soon)
}

// holds locks a key and insists on getting it.
func (p *puppet) holds(o crew.Order) crew.Answer {
	p.t.Helper()
	o.Do = "lock"
	a := p.do(o)
	if a.Class != "" {
		p.t.Fatalf("lock %q: %s", o.Keys, a.Text)
	}
	return a
}

func (p *puppet) wait(answer <-chan crew.Answer, within time.Duration) crew.Answer {
	p.t.Helper()
	select {
	case a := <-answer:
		return a
	case <-time.After(within):
		p.t.Fatalf("no answer within %s\n%s", within, p.Output())
		return crew.Answer{}
	}
}

func (p *puppet) pause() {
	p.t.Helper()
	wantNil(p.t, p.Pause())
}

func (p *puppet) resume() {
	p.t.Helper()
	wantNil(p.t, p.Resume())
}

// eventually asks until the answer is yes.
func eventually(t testing.TB, within time.Duration, what string, ask func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !ask() {
		select {
		case <-look.C:
		case <-deadline.C:
			if !ask() {
				t.Fatalf("not within %s: %s", within, what)
			}
			return
		}
	}
}

// waiting waits until that many stand in line behind the holders.
func waiting(t testing.TB, c *hasp.Client, key string, n int) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("%d wait for %q", n, key), func() bool {
		line, err := c.Inspect(t.Context(), key)
		return err == nil && line.Waiting == n
	})
}

// empty waits until nobody stands in any line.
func empty(t testing.TB, c *hasp.Client, within time.Duration) {
	t.Helper()
	var left []hasp.Line
	eventually(t, within, "all lines are empty", func() bool {
		left = nil
		for line, err := range c.List(t.Context(), "") {
			if err != nil {
				return false
			}
			if len(line.Holders)+line.Waiting > 0 {
				left = append(left, line)
			}
		}
		return len(left) == 0
	})
}

// rest answers how long the holder of a key lives by the store's word; 0: nobody holds.
func rest(t testing.TB, c *hasp.Client, key string) time.Duration {
	t.Helper()
	line, err := c.Inspect(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(line.Holders) == 0 {
		return 0
	}
	return line.Holders[0].ExpiresIn
}

// locked takes a lock, again where the store had no time to answer.
func locked(t testing.TB, m *hasp.Mutex) (lease *hasp.Lease, err error) {
	for range 6 {
		if lease, err = m.Lock(t.Context()); !errors.Is(err, hasp.ErrUnavailable) {
			return lease, err
		}
	}
	return lease, err
}

// released gives a lease back and insists that it was held.
func released(t testing.TB, l *hasp.Lease) {
	t.Helper()
	wantNil(t, l.Release(t.Context()))
}

// notices waits for a lease to be lost that is renewed in vain: before its trust would
// have run out.
func notices(t testing.TB, l *hasp.Lease, trusted time.Time) {
	t.Helper()
	if at := lost(t, l, soon); !at.Before(trusted) {
		t.Errorf("told %s after the trust of the last renewal", at.Sub(trusted))
	}
}

// lost waits for a lease to be lost, and answers when its owner was told.
func lost(t testing.TB, l *hasp.Lease, within time.Duration) time.Time {
	t.Helper()
	select {
	case <-l.Done():
		at := time.Now()
		wantClass(t, l.Err(), "lost")
		return at
	case <-time.After(within):
		t.Fatalf("%s is not lost within %s", l, within)
		return time.Time{}
	}
}

// vanished waits until a store has nothing any more, and says what it has and for
// how long where that does not come.
func vanished(t testing.TB, s *store) {
	t.Helper()
	var left []string
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if left = must(s.remain(t.Context()))(t); len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	if s.redis == nil {
		t.Fatalf("left: %q", left)
	}
	for _, key := range left {
		rdb := s.redis.Admin()
		t.Errorf("%q is left: %s, for %s, %q", key,
			rdb.Type(t.Context(), key).Val(), rdb.PTTL(t.Context(), key).Val(), rdb.Get(t.Context(), key).Val())
	}
}

package mysqllease_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/driver"
)

// A pool of one connection is enough, also beside the program's own queries.
func TestAPoolOfOneIsEnough(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	db := s.open(t, s.database(t))
	db.SetMaxOpenConns(1)
	run(t, db, "CREATE TABLE app (n INT)")
	c, err := hasp.New(mysqllease.New(db, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var wg sync.WaitGroup
	n := 0
	for range 10 {
		wg.Go(func() {
			for range 5 {
				err := c.Mutex("key").Do(ctx, func(ctx context.Context) error {
					n++
					_, err := db.ExecContext(ctx, "INSERT INTO app VALUES (1)")
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n != 50 {
		t.Errorf("ran %d times, want 50", n)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are out", n)
	}
}

// Where the program has all connections of its pool, calls end with their context.
func TestAFullPoolIsUnavailableInTime(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	db := s.open(t, s.database(t))
	db.SetMaxOpenConns(1)
	d := mysqllease.New(db, nil)
	c := joined(t, d, mutex("client", "key"))
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.Leave(ctx, driver.Leaving{Ref: c.Ref}); !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want ErrUnavailable and the context's error", err)
	}
	_ = conn.Close()
	wants(t, leave(t, d, c.Ref), driver.Left)
}

// A server without room for a connection says so in a class and with words of its own.
//
//nolint:paralleltest // has a server of its own, which is enough at once
func TestAServerWithoutAFreeConnectionIsUnavailable(t *testing.T) {
	s := startServer(t)
	name := s.database(t)
	admin := s.open(t, name)
	run(t, admin, "CREATE USER app@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1", "GRANT ALL ON "+name+".* TO app@'127.0.0.1'")
	busy := s.open(t, name, as("app"))
	conn, err := busy.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	d := mysqllease.New(s.open(t, name, as("app")), nil)
	if err := joins(t, d); !errors.Is(err, driver.ErrUnavailable) || !strings.Contains(err.Error(), "max_connections") {
		t.Errorf("%v, want ErrUnavailable that names the limit", err)
	}
}

// Connections that somebody kills, at whatever moment, lose nothing and are not used again.
//
//nolint:paralleltest // kills every connection of its server
func TestKilledConnectionsLoseNothing(t *testing.T) {
	s := startServer(t)
	name := s.database(t)
	admin, ctx := s.open(t, ""), t.Context()
	db := s.open(t, name)
	c, err := hasp.New(mysqllease.New(db, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var kills sync.WaitGroup
	kills.Go(func() {
		for !stop.Load() {
			time.Sleep(20 * time.Millisecond)
			ids, err := connections(ctx, admin, name)
			if err != nil {
				t.Error(err)
				return
			}
			for _, id := range ids {
				_, _ = admin.ExecContext(ctx, "KILL ?", id) // it may have ended
			}
		}
	})
	inside, n := 0, 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				err := c.Mutex("key").Do(ctx, func(context.Context) error {
					if inside++; inside != 1 {
						t.Error("two hold the lock")
					}
					n++
					inside--
					return nil
				})
				if err != nil && !errors.Is(err, hasp.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	kills.Wait()
	if n == 0 {
		t.Error("nobody ever got the lock")
	}
	if err := c.Mutex("key").Do(ctx, func(context.Context) error { return nil }); err != nil {
		t.Errorf("when the killing is over: %v", err)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// Pooled connections that outlived wait_timeout are replaced, unseen, whether the MySQL driver
// looks after them or not.
func TestConnectionsThatWereIdleForTooLongAreReplaced(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	admin := s.open(t, "")
	run(t, admin, "CREATE USER idle@'127.0.0.1'", "GRANT ALL ON "+name+".* TO idle@'127.0.0.1'")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for _, looks := range []bool{true, false} {
		d := mysqllease.New(s.open(t, name, as("idle"), func(c *mysql.Config) {
			c.Params, c.CheckConnLiveness = map[string]string{"wait_timeout": "1"}, looks
		}), nil)
		for range 2 {
			wants(t, leave(t, d, joined(t, d, mutex("client", "key")).Ref), driver.Left)
			for open := 1; open > 0; time.Sleep(20 * time.Millisecond) {
				row := admin.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'idle'")
				if err := row.Scan(&open); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// connections answers the ids of all connections to a database.
func connections(ctx context.Context, admin *sql.DB, database string) ([]int64, error) {
	rows, err := admin.QueryContext(ctx, "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ?", database)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// wire is a network that can go silent: what is sent is swallowed, nothing comes.
type wire struct {
	net.Conn
	silent *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if w.silent.Load() {
		<-w.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	if w.silent.Load() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

// Close leaves the server's side open, as a network does that is cut.
func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	if w.silent.Load() {
		return nil
	}
	return w.Conn.Close()
}

// A look for news on a connection that has fallen silent is given up, and the next one takes
// another.
func TestNewsComeAlthoughAConnectionFellSilent(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	other := newDriver(t, s, name)
	var mu sync.Mutex
	var wires []*wire
	var dialer net.Dialer
	db := s.open(t, name, func(c *mysql.Config) {
		c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			w := &wire{Conn: conn, silent: new(atomic.Bool), closed: make(chan struct{})}
			mu.Lock()
			defer mu.Unlock()
			wires = append(wires, w)
			return w, err
		}
	})
	d := mysqllease.New(db, nil)
	held := joined(t, other, lives(mutex("other", "key"), time.Minute))
	waiter := lives(mutex("client", "key"), time.Minute)
	news := make(chan driver.Signal, 100)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	go func() { _ = d.Listen(ctx, waiter.ID.Inbox(), func(s driver.Signal) { news <- s }) }()
	wants(t, join(t, d, driver.Join{Claim: waiter}), driver.Waiting)
	mu.Lock()
	for _, w := range wires { // those there are by now
		w.silent.Store(true)
	}
	mu.Unlock()
	wants(t, leave(t, other, held.Ref), driver.Left)
	for {
		select {
		case s := <-news:
			if s.Kind == driver.Granted && s.ID == waiter.ID {
				return
			}
		case <-ctx.Done():
			t.Fatal("the client is not told of its grant")
		}
	}
}

// A client that vanishes in the middle of a step, without a word to the server, bars the
// way of the others in its lines for a few seconds only.
func TestAClientThatVanishesInTheMiddleOfAStepDoesNotKeepItsLines(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	other := newDriver(t, s, name)
	var silent atomic.Bool
	var dialer net.Dialer
	db := s.open(t, name, func(c *mysql.Config) {
		c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			return &wire{Conn: conn, silent: &silent, closed: make(chan struct{})}, err
		}
	})
	d := mysqllease.New(db, nil)
	run(t, s.open(t, name), "CREATE TRIGGER slow BEFORE DELETE ON hasp_claims FOR EACH ROW SET @slept = SLEEP(2)")
	c := joined(t, d, mutex("client", "key"))
	wants(t, join(t, other, driver.Join{Claim: mutex("other", "key"), Try: true}), driver.Refused)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	admin := s.open(t, name)
	go func() {
		defer cancel()
		for asleep := 0; asleep == 0 && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) { // until it is in the middle of its Leave
			row := admin.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = ? AND state = 'User sleep'", name)
			if err := row.Scan(&asleep); err != nil {
				t.Error(err)
				return
			}
		}
		silent.Store(true)
	}()
	if _, err := d.Leave(ctx, driver.Leaving{Ref: c.Ref}); !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want ErrUnavailable and the context's error", err)
	}
	// It waits for the line, whose step is undone after the few seconds of wait_timeout; by
	// the server's own it would wait for hours.
	wants(t, join(t, other, driver.Join{Claim: mutex("other", "key"), Try: true}), driver.Refused)
}

// A server that is killed and started again has what was answered, and is used again.
//
//nolint:paralleltest // has a server of its own, which is enough at once
func TestARestartedServerKeepsTheLines(t *testing.T) {
	s := startServer(t, "--innodb-flush-log-at-trx-commit=1")
	name := s.database(t)
	d, other := newDriver(t, s, name), newDriver(t, s, name)
	c := lives(mutex("holder", "key"), time.Minute)
	st := join(t, d, driver.Join{Claim: c})
	wants(t, st, driver.Holding)
	wants(t, join(t, other, driver.Join{Claim: mutex("other", "key"), Try: true}), driver.Refused)
	s.stop()
	if err := joins(t, other); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("without a server: %v, want ErrUnavailable", err)
	}
	if !s.start(t) {
		t.Fatal("the server does not start again")
	}
	again, err := renew(t.Context(), d, c)
	if err != nil || again.State != driver.Holding || again.Number != st.Number {
		t.Errorf("after the restart: %+v, %v", again, err)
	}
	wants(t, join(t, other, driver.Join{Claim: mutex("other", "key"), Try: true}), driver.Refused)
	wants(t, leave(t, d, c.Ref), driver.Left)
	next := join(t, other, driver.Join{Claim: mutex("other", "key"), Try: true})
	if wants(t, next, driver.Holding); next.Number <= st.Number {
		t.Errorf("the next number %d is not above %d", next.Number, st.Number)
	}
}

// Calls that are cancelled at any point leave no connection out, no transaction open on the
// server, and no connection other than it was.
func TestCancelledCallsLeaveNothingOpen(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	db := s.open(t, name)
	db.SetMaxOpenConns(4)
	d := mysqllease.New(db, nil)
	c := joined(t, d, mutex("client", "first"))
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
			defer cancel()
			_, _ = d.Join(ctx, driver.Join{Claim: mutex("client", "key"), Try: true})
		})
	}
	wg.Wait()
	wants(t, leave(t, d, c.Ref), driver.Left)
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are out", n)
	}
	for range 4 { // whichever are in the pool
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var autocommit, wait int
		if err := conn.QueryRowContext(t.Context(), "SELECT @@autocommit, @@wait_timeout").Scan(&autocommit, &wait); err != nil {
			t.Fatal(err)
		}
		if autocommit != 1 || wait < 1000 {
			t.Errorf("a connection has autocommit %d and a wait_timeout of %d s", autocommit, wait)
		}
	}
	// A statement whose client has left ends by itself; until then its line is locked.
	d = newDriver(t, s, name)
	wants(t, leave(t, d, mutex("client", "key").Ref), driver.Gone)
}

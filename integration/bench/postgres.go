package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp/backend/pglease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/integration/servers"
)

// postgres is a server on the core for servers, with hasp's tables and a pool of the
// bench's own.
type postgres struct {
	*servers.Postgres
	pool *pgxpool.Pool
}

func (p plan) withPostgres(ctx context.Context, use func(s *postgres) error, settings ...string) error {
	settings = append(settings, "max_connections=400", "track_activity_query_size=65536", "autovacuum_naptime=5s")
	server, err := servers.StartPostgres(settings...)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := p.cores.bindServer(server.PID()); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pglease.Migrate(ctx, pool, nil); err != nil {
		return err
	}
	var version string
	if err := pool.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&version); err != nil {
		return err
	}
	p.versions["PostgreSQL"] = version
	return use(&postgres{server, pool})
}

// number asks for one number.
func (s *postgres) number(ctx context.Context, query string) (n float64, err error) {
	err = s.pool.QueryRow(ctx, query).Scan(&n)
	return n, err
}

// measurePostgres: without waits for the disk where times are told, except in one row.
func measurePostgres(ctx context.Context, p plan) ([]row, error) {
	var rows []row
	err := p.withPostgres(ctx, func(s *postgres) error {
		pairs, err := p.postgresPairs(ctx, s, "")
		if err != nil {
			return err
		}
		queues, err := p.queues(ctx, s.URL(), nameOnPostgres, nameAdvisory, atMost(500, "p50 ≤ 0.5 ms"), atMost(5000, "p99 ≤ 5 ms"))
		if err != nil {
			return err
		}
		held, err := p.heldRows(ctx, s)
		for _, more := range [][]row{pairs, queues, held} {
			rows = append(rows, more...)
		}
		return err
	}, "fsync=off")
	if err != nil {
		return nil, err
	}
	err = p.withPostgres(ctx, func(s *postgres) error {
		pairs, err := p.postgresPairs(ctx, s, ", commits on disk")
		rows = append(rows, pairs...)
		return err
	})
	return rows, err
}

// measureGrowth takes minutes, so it is a group of its own.
func measureGrowth(ctx context.Context, p plan) (rows []row, err error) {
	err = p.withPostgres(ctx, func(s *postgres) error {
		rows, err = p.growth(ctx, s)
		return err
	}, "fsync=off")
	return rows, err
}

const nameByHand = "the same function calls by hand"

// postgresPairs is a free lock, taken and released.
func (p plan) postgresPairs(ctx context.Context, s *postgres, where string) ([]row, error) {
	users, end, err := p.pairsOf(ctx, s.URL(), nameOnPostgres, nameAdvisory)
	defer end()
	if err != nil {
		return nil, err
	}
	hand, err := s.byHand(ctx)
	if err != nil {
		return nil, err
	}
	users = append(users, user{nameByHand, hand, true})
	quiet, err := s.settled(ctx)
	if err != nil {
		return nil, err
	}
	r, err := interleave(ctx, p.pairRounds, p.pairSides(users, 1)...)
	if err != nil {
		return nil, err
	}
	loud, err := s.notified(ctx)
	const p50 = "p50"
	what := "lock + release, 1 goroutine, p50" + where + ": "
	ratio := r.ratio(nameOnPostgres, nameByHand, p50)
	rows := []row{
		atMost(1.10, "≤ 1.10 x by hand").judged("postgres-free"+where, what+nameOnPostgres, ratio, micros(r.median(nameOnPostgres, p50)), times(ratio, "by hand")),
		compared(what+nameByHand, micros(r.median(nameByHand, p50)), ""),
		compared(what+nameAdvisory+", whose session must stay and which stores nothing", micros(r.median(nameAdvisory, p50)),
			times(r.ratio(nameAdvisory, nameByHand, p50), "by hand")),
	}
	if where == "" {
		rows = append(rows, atMost(0, "none").judged("postgres-notify", "notifications of free locks, by the server's count of uses of their queue", loud-quiet,
			fmt.Sprintf("%.0f", loud-quiet), ""))
	}
	return rows, err
}

// notified counts how often the queue of notifications was used. A NOTIFY puts something
// into it.
func (s *postgres) notified(ctx context.Context) (float64, error) {
	time.Sleep(1100 * time.Millisecond) // sessions report what they have counted once a second
	return s.number(ctx, "SELECT coalesce(sum(blks_zeroed + blks_hit), 0) FROM pg_stat_slru WHERE lower(name) = 'notify'")
}

// settled is notified once it rises no more: a client sends itself a word when it begins
// to listen.
func (s *postgres) settled(ctx context.Context) (n float64, err error) {
	for last := -1.0; err == nil && n != last; {
		last = n
		n, err = s.notified(ctx)
	}
	return n, err
}

// hand sends the texts that hasp sends, from a pool, and looks only at the first column.
type hand struct {
	pool        *pgxpool.Pool
	join, leave string
}

// byHand learns the texts from what the server says a driver's sessions have sent last.
func (s *postgres) byHand(ctx context.Context) (*hand, error) {
	const label = "by hand"
	pool, err := pgxpool.New(ctx, s.URL()+"&application_name="+"by%20hand")
	if err != nil {
		return nil, err
	}
	h := &hand{pool: pool}
	d := pglease.New(pool, nil)
	c := claims(1, func(int) string { return "by hand" })[0]
	learn := func(what string) (text string, err error) {
		err = s.pool.QueryRow(ctx, `SELECT query FROM pg_stat_activity WHERE application_name = $1 AND query LIKE '%' || $2 || '%'
			ORDER BY query_start DESC LIMIT 1`, label, what).Scan(&text)
		return text, err
	}
	st, err := d.Join(ctx, driver.Join{Claim: c})
	if err := stands(st, err, driver.Holding); err != nil {
		return nil, err
	}
	if h.join, err = learn("join"); err != nil {
		return nil, err
	}
	st, err = d.Leave(ctx, driver.Leaving{Ref: c.Ref})
	if err := stands(st, err, driver.Left); err != nil {
		return nil, err
	}
	if h.leave, err = learn("leave"); err != nil {
		return nil, err
	}
	return h, d.Close(ctx)
}

// send sends one text and insists on what it answers.
func (h *hand) send(ctx context.Context, text string, want driver.State) error {
	conn, err := h.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	results, err := conn.Conn().PgConn().Exec(ctx, text).ReadAll()
	if err != nil {
		return err
	}
	if len(results) != 3 || len(results[1].Rows) != 1 || string(results[1].Rows[0][0]) != strconv.Itoa(int(want)) {
		return errors.New("the function calls by hand answer something else")
	}
	return nil
}

func (h *hand) lock(ctx context.Context, _ string) (func() error, error) {
	return func() error { return h.send(ctx, h.leave, driver.Left) }, h.send(ctx, h.join, driver.Holding)
}

func (h *hand) close() error {
	h.pool.Close()
	return nil
}

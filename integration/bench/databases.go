package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of MariaDB
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/backend/pglease"
)

// Names of what is compared on databases.
const (
	nameOnPostgres = "hasp on PostgreSQL"
	nameAdvisory   = "pg_advisory_lock by hand"
	nameOnMariaDB  = "hasp on MariaDB"
	nameGetLock    = "GET_LOCK by hand"
)

// databases are the same as libraries, on databases. There a process has one client, with
// one pool, since a connection is a process or a thread of the server. A lock by hand
// belongs to a session, so each needs a connection.
func databases() []library {
	return []library{
		{name: nameOnPostgres, open: openPostgres(nil), crowd: openPostgres(apart())},
		{name: nameAdvisory, open: openAdvisory},
		{name: nameOnMariaDB, open: openMariaDB(nil), crowd: openMariaDB(apart())},
		{name: nameGetLock, open: openGetLock},
	}
}

// apart lets no goroutine hand a lock on to another of its client.
func apart() *hasp.Options {
	return &hasp.Options{Lock: hasp.LockOptions{LocalHandoffs: -1}}
}

func openPostgres(opts *hasp.Options) func(url string) (locker, error) {
	return func(url string) (locker, error) {
		pool, err := pgxpool.New(context.Background(), url)
		if err != nil {
			return nil, err
		}
		return newOurs(pglease.New(pool, nil), opts, func() error { pool.Close(); return nil })
	}
}

func openMariaDB(opts *hasp.Options) func(dsn string) (locker, error) {
	return func(dsn string) (locker, error) {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			return nil, err
		}
		return newOurs(mysqllease.New(db, nil), opts, db.Close)
	}
}

// advisory is a lock of the session that has it; nothing of it is stored.
type advisory struct{ conn *pgx.Conn }

func openAdvisory(url string) (locker, error) {
	conn, err := pgx.Connect(context.Background(), url)
	return &advisory{conn}, err
}

func (a *advisory) lock(ctx context.Context, key string) (func() error, error) {
	_, err := a.conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended($1, 0))", key)
	return func() error {
		_, err := a.conn.Exec(ctx, "SELECT pg_advisory_unlock(hashtextextended($1, 0))", key)
		return err
	}, err
}

func (a *advisory) close() error { return a.conn.Close(context.Background()) }

// getLock is the same in MariaDB.
type getLock struct {
	db   *sql.DB
	conn *sql.Conn
}

func openGetLock(dsn string) (locker, error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(context.Background())
	return &getLock{db, conn}, err
}

func (g *getLock) lock(ctx context.Context, key string) (func() error, error) {
	_, err := g.conn.ExecContext(ctx, "DO GET_LOCK(?, 60)", key)
	return func() error {
		_, err := g.conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", key)
		return err
	}, err
}

func (g *getLock) close() error { return errors.Join(g.conn.Close(), g.db.Close()) }

// queues lets contenders hand a key over on a database, beside a lock by hand. bounds are
// those of p50 and p99; none: there is no goal.
func (p plan) queues(ctx context.Context, addr, ours, byHand string, bounds ...goal) ([]row, error) {
	g := &stage{plan: p, addr: addr, joining: 10 * time.Millisecond, settling: p.idle / 8, look: func(context.Context, library) (sight, error) {
		return sight{at: clock()}, nil
	}}
	var rows []row
	for _, n := range p.queue {
		sides, err := g.sides(n+1, p.hold, p.longWindow, ours, byHand)
		if err != nil {
			return nil, err
		}
		r, err := interleave(ctx, p.rounds, sides...)
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("release returned -> next acquired in another process, %d waiting, ", n)
		for i, bound := range bounds {
			quantile := []string{"p50", "p99"}[i]
			value := r.median(ours, quantile)
			rows = append(rows, bound.judged(fmt.Sprintf("%s-handover-%d-%s", ours, n, quantile), what+quantile+": "+ours, value, micros(value), ""))
		}
		what += "p50; p99: "
		if len(bounds) == 0 {
			rows = append(rows, compared(what+ours, gapsOf(r, ours), ""))
		}
		rows = append(rows, compared(what+byHand, gapsOf(r, byHand), ""))
	}
	return rows, nil
}

// pairsOf are free locks in a database, one goroutine.
func (p plan) pairsOf(ctx context.Context, addr string, names ...string) ([]user, func(), error) {
	var users []user
	end := func() {
		for _, u := range users {
			_ = u.close()
		}
	}
	for _, name := range names {
		lib, err := named(name)
		if err != nil {
			return nil, end, err
		}
		l, err := lib.open(addr)
		if err != nil {
			return nil, end, err
		}
		users = append(users, user{name, l, true})
	}
	return users, end, ctx.Err()
}

package stores

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite" // the driver of the tests' database files

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/integration/broken"
)

// Opened is a driver with the handle below it.
type Opened struct {
	driver.Driver
	Redis redis.UniversalClient // of a Redis store
	SQL   *sql.DB               // of a SQL store

	Postgres *pgxpool.Pool // of PostgreSQL, unless by database/sql
}

// Close closes the handle. The driver is closed by its client.
func (o *Opened) Close() error {
	var errs []error
	if o.Redis != nil {
		errs = append(errs, o.Redis.Close())
	}
	if o.SQL != nil {
		errs = append(errs, o.SQL.Close())
	}
	if o.Postgres != nil {
		go o.Postgres.Close() // where the server is silent it takes 15 s
	}
	return errors.Join(errs...)
}

// Open makes a driver by an address:
//
//	sqlite:PATH
//	mysql://HOST:PORT/DATABASE
//	postgres://USER@HOST:PORT/DATABASE
//	redis://HOST:PORT
//	redis+sentinel://HOST:PORT,HOST:PORT/NAME
//	redis+cluster://HOST:PORT,HOST:PORT
//
// Parameters are user, password, retries, timeout (of reading and writing), pool, slot,
// replicas, db, and broken: a driver that does not keep its contract, see package broken.
func Open(address string) (*Opened, error) {
	address, query, _ := strings.Cut(address, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	o, err := open(address, params)
	if err != nil {
		return nil, err
	}
	if how := params.Get("broken"); how != "" {
		o.Driver, err = broken.Wrap(broken.Kind(how), o.Driver)
	}
	return o, err
}

func open(address string, params url.Values) (*Opened, error) {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		db, err := sql.Open("sqlite", SQLiteDSN(path))
		if err != nil {
			return nil, err
		}
		return &Opened{Driver: sqlitelease.New(db, nil), SQL: db}, nil
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return nil, fmt.Errorf("no store at %q", address)
	}
	switch scheme {
	case "mysql":
		return openMySQL(rest, params)
	case "postgres":
		return openPostgres(address, params)
	}
	nodes, name, _ := strings.Cut(rest, "/")
	rdb, err := connect(scheme, strings.Split(nodes, ","), name, params)
	if err != nil {
		return nil, err
	}
	replicas, _ := strconv.Atoi(params.Get("replicas"))
	opts := &redislease.Options{Slot: params.Get("slot"), Replicas: replicas}
	return &Opened{Driver: redislease.New(rdb, opts), Redis: rdb}, nil
}

func openMySQL(place string, params url.Values) (*Opened, error) {
	c := mysql.NewConfig()
	c.Net, c.User, c.Logger = "tcp", "root", &mysql.NopLogger{}
	c.Addr, c.DBName, _ = strings.Cut(place, "/")
	if user := params.Get("user"); user != "" {
		c.User, c.Passwd = user, params.Get("password")
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	if text := params.Get("pool"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("parameter pool: %w", err)
		}
		db.SetMaxOpenConns(n)
	}
	return &Opened{Driver: mysqllease.New(db, nil), SQL: db}, nil
}

// SQLiteDSN is how the tests open a database file.
func SQLiteDSN(path string) string {
	return "file:" + path + "?_pragma=journal_mode(wal)&_pragma=synchronous(normal)"
}

func connect(scheme string, nodes []string, name string, params url.Values) (redis.UniversalClient, error) {
	o := redis.UniversalOptions{
		Addrs: nodes, MasterName: name, Username: params.Get("user"), Password: params.Get("password"),
		DisableIdentity: true,
	}
	for _, number := range []struct {
		name string
		to   *int
	}{{"retries", &o.MaxRetries}, {"pool", &o.PoolSize}, {"db", &o.DB}} {
		if text := params.Get(number.name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, fmt.Errorf("parameter %s: %w", number.name, err)
			}
			*number.to = n
		}
	}
	if text := params.Get("timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, err
		}
		o.ReadTimeout, o.WriteTimeout = d, d
	}
	switch scheme {
	case "redis":
		return redis.NewClient(o.Simple()), nil
	case "redis+sentinel":
		return redis.NewFailoverClient(o.Failover()), nil
	case "redis+cluster":
		return redis.NewClusterClient(o.Cluster()), nil
	}
	return nil, fmt.Errorf("no store with the scheme %q", scheme)
}

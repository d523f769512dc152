package open

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp/backend/pglease"
)

// Schemes of PostgreSQL.
const (
	postgresScheme   = "postgres"
	postgresqlScheme = "postgresql"
)

const postgresPort = "5432"

// postgresHints are names that other libraries have, and what to write here.
func postgresHints() map[string]string {
	login := "user and password stand before the host: postgres://USER:PASSWORD@HOST/DATABASE"
	secure := "there are sslmode, sslrootcert, sslcert and sslkey"
	return map[string]string{
		"user": login, "password": login,
		"dbname": "the database is the path", "database": "the database is the path",
		"port":            "the port stands behind the host: HOST:PORT",
		"connect_timeout": "it is dial_timeout here, with a unit", "pool_max_conns": "it is pool_size here",
		"search_path": "it is schema here", "options": "hasp sets what it needs by itself",
		"ssl": secure, "tls": secure, "tls_ca": secure, "tls_cert": secure, "tls_key": secure,
	}
}

// openPostgres opens what stands behind the scheme of a PostgreSQL URL.
//
//nolint:contextcheck,nolintlint // for the callers: nothing is connected that could be cancelled
func openPostgres(scheme, rest string) (*Store, error) {
	a, p, err := readPostgres(scheme, rest)
	if err != nil {
		return nil, err
	}
	config, err := postgresConfig(scheme, a, p)
	if err != nil {
		return nil, err
	}
	lease := &pglease.Options{Schema: p.text("schema"), Prefix: p.text("prefix")}
	if p.err != nil {
		return nil, p.err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config) //nolint:forbidigo // nothing is connected: the pool keeps no idle connections
	if err != nil {
		return nil, invalidf("the %s URL: the client refuses its options", scheme)
	}
	s := &Store{
		kind: postgresScheme, where: a.where(scheme), driver: pglease.New(pool, lease),
		migrate: func(ctx context.Context) error { return pglease.Migrate(ctx, pool, lease) },
		schema:  func() (string, error) { return pglease.SchemaSQL(lease) },
		close:   func() error { pool.Close(); return nil },
	}
	if err := s.driver.Features().Err; err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// readPostgres parts a PostgreSQL URL.
func readPostgres(scheme, rest string) (*address, *parameters, error) {
	a, err := parseAddress(scheme, rest, postgresPort, "host")
	if err != nil {
		return nil, nil, err
	}
	p, err := parseParameters(a.query, postgresHints(), "schema", "prefix", "pool_size", "dial_timeout",
		"application_name", "target_session_attrs", "sslmode", "sslrootcert", "sslcert", "sslkey", "host")
	return a, p, err
}

// postgresConfig is what the URL says, in the client's terms. What it leaves open comes
// from the variables and files that PostgreSQL's programs read: PGPASSWORD, ~/.pgpass.
func postgresConfig(scheme string, a *address, p *parameters) (*pgxpool.Config, error) {
	dsn := keywords{}
	dsn.add("user", a.user)
	dsn.add("password", a.password)
	dsn.add("dbname", a.path)
	var hosts, ports []string
	for _, server := range a.hosts {
		host, port, _ := net.SplitHostPort(server)
		hosts, ports = append(hosts, host), append(ports, port)
	}
	session := []string{"any", "read-write", "read-only", "primary", "standby", "prefer-standby"}
	if folder := p.text("host"); folder != "" {
		if len(hosts) > 0 || !strings.HasPrefix(folder, "/") {
			return nil, invalidf("the parameter host of the %s URL is the folder of a socket, in the place of a server: %[1]s:///DATABASE?host=/var/run/postgresql", scheme)
		}
		hosts = []string{folder}
	} else if len(hosts) > 1 { // a standby takes no locks
		session = append([]string{"read-write"}, session...)
	}
	dsn.add("host", strings.Join(hosts, ","))
	dsn.add("port", strings.Join(ports, ","))
	dsn.add("target_session_attrs", p.oneOf("target_session_attrs", session...))
	dsn.add("application_name", p.textOr("application_name", "hasp"))
	if p.values.Has("sslmode") {
		dsn.add("sslmode", p.oneOf("sslmode", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"))
	}
	for _, name := range []string{"sslrootcert", "sslcert", "sslkey"} {
		dsn.add(name, p.text(name))
	}
	size, dial := p.number("pool_size", connections, 1, 1000), p.duration("dial_timeout", patience)
	switch {
	case p.err != nil:
		return nil, p.err
	case a.path == "":
		return nil, invalidf("the %s URL must name a database: %[1]s://HOST/DATABASE", scheme)
	}
	config, err := pgxpool.ParseConfig(dsn.String())
	if err != nil {
		return nil, invalidf("the %s URL%s", scheme, inner(err, a.password))
	}
	config.MaxConns = int32(size) //nolint:gosec // at most 1000
	config.ConnConfig.ConnectTimeout = dial
	return config, nil
}

// inner is why the client refuses its options, without these: its own message repeats
// them.
func inner(err error, password string) string {
	why := errors.Unwrap(err)
	if why == nil || password != "" && strings.Contains(why.Error(), password) {
		return " is refused by the client: look at sslmode, sslrootcert, sslcert and sslkey, at ~/.pgpass and at the variables that begin with PG"
	}
	return ": " + why.Error()
}

// keywords are options as PostgreSQL writes them: name='value'.
type keywords struct{ text strings.Builder }

func (k *keywords) add(name, value string) {
	if value != "" {
		k.text.WriteString(name + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "' ")
	}
}

func (k *keywords) String() string { return k.text.String() }

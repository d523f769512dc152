package open

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/hasp-dev/hasp/backend/mysqllease"
)

// Schemes of MySQL and MariaDB.
const (
	mysqlScheme   = "mysql"
	mariadbScheme = "mariadb"
)

const mysqlPort = "3306"

// mysqlHints are names that other libraries have, and what to write here.
func mysqlHints() map[string]string {
	login := "user and password stand before the host: mysql://USER:PASSWORD@HOST/DATABASE"
	secure := "there are tls=true, tls_ca, tls_cert and tls_key"
	return map[string]string{
		"user": login, "password": login, "database": "the database is the path",
		"timeout": "it is dial_timeout here", "connect_timeout": "it is dial_timeout here",
		"parseTime": "hasp sets what it needs by itself", "charset": "hasp sets what it needs by itself", "loc": "hasp sets what it needs by itself",
		"ssl": secure, "sslmode": secure, "ssl-mode": secure, "unix_socket": "it is socket here",
	}
}

// openMySQL opens what stands behind the scheme of a MySQL URL.
func openMySQL(scheme, rest string) (*Store, error) {
	a, p, err := readMySQL(scheme, rest)
	if err != nil {
		return nil, err
	}
	config, err := mysqlConfig(scheme, a, p)
	if err != nil {
		return nil, err
	}
	lease, size := &mysqllease.Options{Prefix: p.text("prefix")}, p.number("pool_size", connections, 1, 1000)
	if p.err != nil {
		return nil, p.err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, invalidf("the %s URL: the client refuses its options", scheme)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	s := &Store{
		kind: mysqlScheme, where: a.where(scheme), driver: mysqllease.New(db, lease),
		migrate: func(ctx context.Context) error { return mysqllease.Migrate(ctx, db, lease) },
		schema:  func() (string, error) { return mysqllease.SchemaSQL(lease) },
		close:   db.Close,
	}
	if err := s.driver.Features().Err; err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// readMySQL parts a MySQL URL.
func readMySQL(scheme, rest string) (*address, *parameters, error) {
	a, err := parseAddress(scheme, rest, mysqlPort, "socket")
	if err != nil {
		return nil, nil, err
	}
	names := append([]string{"prefix", "pool_size", "dial_timeout", "socket", "tls"}, tlsNames()...)
	p, err := parseParameters(a.query, mysqlHints(), names...)
	return a, p, err
}

// mysqlConfig is what the URL says, in the client's terms.
func mysqlConfig(scheme string, a *address, p *parameters) (*mysql.Config, error) {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.DBName = a.user, a.password, a.path
	c.Timeout = p.duration("dial_timeout", patience)
	c.Logger = &mysql.NopLogger{} // what matters comes back as an error
	c.ConnectionAttributes = "program_name:hasp"
	var err error
	if c.TLS, err = tlsConfig(p, p.truth("tls"), "add tls=true"); err != nil {
		return nil, err
	}
	socket := p.text("socket")
	switch {
	case p.err != nil:
		return nil, p.err
	case a.path == "":
		return nil, invalidf("the %s URL must name a database: %[1]s://HOST/DATABASE", scheme)
	case len(a.hosts) > 1:
		return nil, invalidf("a %s URL names one server: the primary of a replication, or always the same node of a cluster", scheme)
	case socket == "":
		c.Net, c.Addr = "tcp", a.hosts[0]
	case len(a.hosts) > 0 || !strings.HasPrefix(socket, "/"):
		return nil, invalidf("the parameter socket of the %s URL is a file, in the place of a server: %[1]s:///DATABASE?socket=/run/mysqld/mysqld.sock", scheme)
	default:
		c.Net, c.Addr = "unix", socket
	}
	return c, nil
}

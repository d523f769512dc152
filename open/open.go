// Package open makes a store's driver from a URL or a file. It is the one place that knows
// every backend; a program that has only one needs that backend and not this.
//
//	store, err := open.URL("sqlite:/var/lib/app/locks.db", nil)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	client, err := hasp.New(store.Driver(), nil)
//
// # SQLite
//
// sqlite:PATH is a file on this machine, by a relative or absolute path; sqlite:///PATH
// is accepted as well. In PATH the characters ? # and % are written as %3F, %23 and
// %25. The file must exist, be in WAL mode and have its tables: hasp migrate sees to all
// three, and so does a program that opens it with [Options].Create and calls
// [Store.Migrate]. Opening without Create never changes the mode. A database in memory is
// of no use to a second process and is refused: take package memlease.
//
// The program chooses the SQLite driver by importing one; it is found under the names
// "sqlite" or "sqlite3" that the three usual ones register. Parameters:
//
//   - prefix begins the names of the tables, "hasp_" by default.
//   - synchronous is normal (the default) or full: whether a commit waits for the disk.
//     A power failure ends all locks of the machine either way.
//
// # Redis
//
//	redis://USER:PASSWORD@HOST:PORT/DB           one server
//	rediss://USER:PASSWORD@HOST:PORT/DB          the same over TLS
//	redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER
//	redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT
//
// Only a host is needed, and the name of the master behind sentinels. The default user is
// written :PASSWORD@. In user and password the characters : / ? # @ and % are written as
// %3A, %2F, %3F, %23, %40 and %25. Nothing is connected before the store is used. Parameters:
//
//   - db is the number of the database, 0 by default; not in a cluster.
//   - slot, replicas, replica_timeout and allow_eviction are those of redislease.Options.
//   - pool_size is how many connections there are at most to each server, 10 by default;
//     one more listens.
//   - dial_timeout, read_timeout and write_timeout are 3s by default.
//   - sentinel_user and sentinel_password log in to the sentinels, if they ask for it.
//   - tls=true speaks TLS to all servers, and to the sentinels; redis: and rediss: do without it.
//   - tls_ca is a file with the certificates of those who may sign the server's, instead of
//     the system's; tls_cert and tls_key are files with a certificate of the client's own;
//     tls_server_name is the name the server's certificate must have, instead of the host's.
//   - tls_insecure_skip_verify=true takes any certificate, and so anybody for the server.
//
// Times have a unit (500ms, 3s), and truths are true or false.
//
// # PostgreSQL, MySQL and MariaDB
//
//	postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE    or postgresql:
//	mysql://USER:PASSWORD@HOST:PORT/DATABASE                 or mariadb:
//
// hasp migrate, or [Store.Migrate], makes the tables. What a postgres: URL leaves open comes
// from the variables and files that PostgreSQL's own programs read, PGPASSWORD and ~/.pgpass
// among them. Parameters of both:
//
//   - prefix begins the names of the tables, "hasp_" by default.
//   - pool_size is how many connections there are at most, 4 by default; for PostgreSQL one
//     more listens. dial_timeout is 3s by default.
//
// Of PostgreSQL: schema holds the tables; sslmode, sslrootcert, sslcert, sslkey,
// target_session_attrs and application_name are those of libpq, target_session_attrs being
// read-write where several servers are named; host=/FOLDER is a socket, in the place of a
// server. Of MySQL: tls=true and the other tls_ parameters are as above; socket=/FILE is a
// socket, in the place of a server.
//
// # Files
//
// [File] reads a TOML or YAML file with a URL, or with the keys of a Redis, and what else a
// client needs to know.
//
// # Errors
//
// A URL that cannot be right is driver.ErrInvalid, a missing SQLite file
// driver.ErrRefused. No error shows more of a URL than its scheme, the names of its
// parameters, and the paths of files: the rest may be a password.
package open

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hasp-dev/hasp/driver"
)

// EnvName is the environment variable that [Env] reads.
const EnvName = "HASP_URL"

// Options say how a store is opened.
type Options struct {
	// Create lets a missing SQLite file pass, for [Store.Migrate] to make. Defaults to
	// refusing it.
	Create bool

	// Warn is called, once for each reason, with what does not stop locks but makes them
	// worse, such as a Redis user that may not listen. It must not block. Defaults to
	// nobody being told.
	Warn func(error)
}

// Store is an opened store. Its handle belongs to it: close the clients first, then
// the store.
type Store struct {
	kind, where string
	driver      driver.Driver
	migrate     func(context.Context) error
	schema      func() (string, error)
	close       func() error
	settings    Settings
}

// Driver is the way to the store, for one client.
func (s *Store) Driver() driver.Driver { return s.driver }

// Kind is the kind of store: "sqlite", "redis", "postgres" or "mysql".
func (s *Store) Kind() string { return s.kind }

// String says which store it is, without passwords.
func (s *Store) String() string { return s.where }

// Migrate makes the tables, or brings them up to date. It may run in many processes at
// once. A store without tables has nothing to migrate.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.where, err)
	}
	return nil
}

// Schema is the SQL that Migrate runs on an empty database; empty for a store without
// tables.
func (s *Store) Schema() (string, error) { return s.schema() }

// Close closes the handle.
func (s *Store) Close() error { return s.close() }

// Env opens the store that the environment variable HASP_URL names.
func Env(opts *Options) (*Store, error) {
	raw := os.Getenv(EnvName)
	if raw == "" {
		return nil, invalidf("%s is not set; set it to the URL of a store, such as sqlite:/var/lib/app/locks.db", EnvName)
	}
	return URL(raw, opts)
}

// URL opens the store that a URL names, with nil for the default options. It does no
// I/O but to look whether a SQLite file is there, and to read the files of certificates.
func URL(raw string, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	scheme, rest, err := split(raw)
	if err != nil {
		return nil, err
	}
	switch scheme {
	case "sqlite":
		return openSQLite(rest, opts)
	case redisScheme, redissScheme, sentinelScheme, clusterScheme:
		return openRedis(scheme, rest, opts)
	case postgresScheme, postgresqlScheme:
		return openPostgres(scheme, rest)
	case mysqlScheme, mariadbScheme:
		return openMySQL(scheme, rest)
	}
	if slices.Contains(planned(), scheme) {
		return nil, invalidf("this version does not know %s: stores yet; it knows %s", scheme, known)
	}
	return nil, invalidf("%q is no scheme of a store%s; this version knows %s", scheme, suggestion(scheme, schemes()), known)
}

// known names the URLs of this version.
const known = "sqlite:PATH, redis://HOST, rediss://HOST, redis+sentinel://HOST,HOST/MASTER, redis+cluster://HOST,HOST, " +
	"postgres://HOST/DATABASE and mysql://HOST/DATABASE"

// schemes are those of this version.
func schemes() []string {
	return []string{
		"sqlite", redisScheme, redissScheme, sentinelScheme, clusterScheme,
		postgresScheme, postgresqlScheme, mysqlScheme, mariadbScheme,
	}
}

// planned are the schemes that other versions know.
func planned() []string {
	return []string{"etcd"}
}

// split parts a URL at its scheme. What cannot be a scheme is not repeated.
func split(raw string) (scheme, rest string, err error) {
	if raw == "" {
		return "", "", invalidf("the URL of the store is empty; this version knows %s", known)
	}
	scheme, rest, found := strings.Cut(raw, ":")
	if !found || !isScheme(scheme) {
		return "", "", invalidf("the URL of the store does not begin with a scheme and a colon; this version knows %s", known)
	}
	return strings.ToLower(scheme), rest, nil
}

func isScheme(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", r)) {
			return false
		}
	}
	return s != ""
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", driver.ErrInvalid, fmt.Sprintf(format, args...))
}

package open

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/backend/redislease"
)

// Schemes of Redis.
const (
	redisScheme    = "redis"
	redissScheme   = "rediss"
	sentinelScheme = "redis+sentinel"
	clusterScheme  = "redis+cluster"
)

const (
	redisPort    = "6379"
	sentinelPort = "26379"
	// patience is how long a connection, a reply and a write are waited for.
	patience = 3 * time.Second
	// redisPool is what a driver needs at once, with something to spare.
	redisPool = 10
	// redisPoolMost is more than a driver ever needs.
	redisPoolMost = 1000
)

// redisHints are names that other libraries have, and what to write here.
func redisHints() map[string]string {
	login := "user and password stand before the host: redis://USER:PASSWORD@HOST"
	times := "there are dial_timeout, read_timeout and write_timeout"
	secure := "TLS is rediss://, or tls=true for redis+sentinel:// and redis+cluster://"
	return map[string]string{
		"user": login, "username": login, "password": login, "auth": login,
		"prefix":  "a prefix of keys is hasp.Options.Prefix",
		"timeout": times, "connect_timeout": times, "socket_timeout": times,
		"ssl": secure, "tls": secure, "skip_verify": "it is tls_insecure_skip_verify here",
		"master": "the name of the master is the path: redis+sentinel://HOST/NAME", "master_name": "the name of the master is the path: redis+sentinel://HOST/NAME",
		"addr": "several servers stand side by side: HOST:PORT,HOST:PORT",
	}
}

// redisNames are the parameters of a scheme.
func redisNames(scheme string) []string {
	names := []string{"slot", "replicas", "replica_timeout", "allow_eviction", "pool_size", "dial_timeout", "read_timeout", "write_timeout"}
	switch scheme {
	case sentinelScheme:
		names = append(names, "db", "sentinel_user", "sentinel_password", "tls")
	case clusterScheme:
		names = append(names, "tls")
	default:
		names = append(names, "db")
	}
	return slices.Concat(names, tlsNames())
}

// openRedis opens what stands behind the scheme of a Redis URL.
func openRedis(scheme, rest string, opts *Options) (*Store, error) {
	client, lease, err := readRedis(scheme, rest)
	if err != nil {
		return nil, err
	}
	lease.Warn = opts.Warn
	rdb, where := redisClient(scheme, client)
	d := redislease.New(rdb, lease)
	if err := d.Features().Err; err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	return &Store{
		kind:    redisScheme,
		where:   where,
		driver:  d,
		migrate: func(context.Context) error { return nil },
		schema:  func() (string, error) { return "", nil },
		close:   rdb.Close,
	}, nil
}

// readRedis reads all of a Redis URL.
func readRedis(scheme, rest string) (*redis.UniversalOptions, *redislease.Options, error) {
	port := redisPort
	if scheme == sentinelScheme {
		port = sentinelPort
	}
	a, err := parseAddress(scheme, rest, port, "")
	if err != nil {
		return nil, nil, err
	}
	if a.user != "" && a.password == "" {
		// The client library would not log in at all, and be the default user.
		return nil, nil, invalidf("the %s URL names a user without a password; write %[1]s://USER:PASSWORD@HOST, or %[1]s://:PASSWORD@HOST for the default user", scheme)
	}
	p, err := parseParameters(a.query, redisHints(), redisNames(scheme)...)
	if err != nil {
		return nil, nil, err
	}
	client, err := redisOptions(scheme, a, p)
	if err != nil {
		return nil, nil, err
	}
	lease := leaseOptions(p)
	return client, lease, p.err
}

// leaseOptions are the parameters of the driver.
func leaseOptions(p *parameters) *redislease.Options {
	return &redislease.Options{
		Slot: p.text("slot"), Replicas: p.number("replicas", 0, 0, 100),
		ReplicaTimeout: p.duration("replica_timeout", 0), AllowEviction: p.truth("allow_eviction"),
	}
}

// redisOptions are the parameters of the client.
func redisOptions(scheme string, a *address, p *parameters) (*redis.UniversalOptions, error) {
	o := &redis.UniversalOptions{
		Addrs: a.hosts, Username: a.user, Password: a.password,
		SentinelUsername: p.text("sentinel_user"), SentinelPassword: p.text("sentinel_password"),
		DialTimeout: p.duration("dial_timeout", patience), ReadTimeout: p.duration("read_timeout", patience),
		WriteTimeout: p.duration("write_timeout", patience), PoolSize: p.number("pool_size", redisPool, 1, redisPoolMost),
	}
	secure, how := scheme == redissScheme, "write rediss://"
	if slices.Contains(p.known, "tls") {
		secure, how = p.truth("tls"), "add tls=true"
	}
	var err error
	if o.TLSConfig, err = tlsConfig(p, secure, how); err != nil {
		return nil, err
	}
	if o.DB, err = p.database(scheme, a.path); err != nil {
		return nil, err
	}
	switch {
	case scheme == sentinelScheme && a.path == "":
		return nil, invalidf("the %s URL must name the master as the sentinels do: %[1]s://HOST:%s/NAME", scheme, sentinelPort)
	case scheme == sentinelScheme:
		o.MasterName = a.path
	case scheme != clusterScheme && len(a.hosts) > 1:
		return nil, invalidf("a %s URL names one server; several are redis+cluster://HOST,HOST or redis+sentinel://HOST,HOST/MASTER", scheme)
	}
	if o.SentinelUsername != "" && o.SentinelPassword == "" {
		return nil, invalidf("the parameter sentinel_user of the URL needs sentinel_password")
	}
	return o, nil
}

// redisClient makes the client, which connects when it is used, and says which store it
// is.
func redisClient(scheme string, o *redis.UniversalOptions) (redis.UniversalClient, string) {
	where := scheme + "://" + strings.Join(o.Addrs, ",")
	switch scheme {
	case sentinelScheme:
		return redis.NewFailoverClient(o.Failover()), where + "/" + o.MasterName
	case clusterScheme:
		return redis.NewClusterClient(o.Cluster()), where
	}
	return redis.NewClient(o.Simple()), where + "/" + strconv.Itoa(o.DB)
}

// database is the number of the database: of a single server also the path.
func (p *parameters) database(scheme, path string) (int, error) {
	const most = 1<<31 - 1
	db := p.number("db", 0, 0, most)
	switch {
	case p.err != nil:
		return 0, p.err
	case path == "" || scheme == sentinelScheme:
		return db, nil
	case scheme == clusterScheme:
		return 0, invalidf("a %s URL has no path: a cluster has one database only", scheme)
	case p.values.Has("db"):
		return 0, invalidf("the path of the %s URL and its parameter db both name a database; give one of the two", scheme)
	}
	n, err := strconv.ParseUint(path, 10, 31)
	if err != nil {
		return 0, invalidf("the path of a %s URL is the number of a database, such as %[1]s://HOST:%s/0", scheme, redisPort)
	}
	return int(n), nil
}

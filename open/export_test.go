package open

import (
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/backend/redislease"
)

// SQLiteDriver chooses among registered drivers.
func SQLiteDriver(registered []string) (string, error) { return sqliteDriver(registered) }

// RedisOptions are what a Redis URL says.
func RedisOptions(raw string) (*redis.UniversalOptions, *redislease.Options, error) {
	scheme, rest, err := split(raw)
	if err != nil {
		return nil, nil, err
	}
	return readRedis(scheme, rest)
}

// PostgresConfig is what a PostgreSQL URL says.
func PostgresConfig(raw string) (*pgxpool.Config, error) {
	_, rest, err := split(raw)
	if err != nil {
		return nil, err
	}
	a, p, err := readPostgres(postgresScheme, rest)
	if err != nil {
		return nil, err
	}
	return postgresConfig(postgresScheme, a, p)
}

// MySQLConfig is what a MySQL URL says.
func MySQLConfig(raw string) (*mysql.Config, error) {
	_, rest, err := split(raw)
	if err != nil {
		return nil, err
	}
	a, p, err := readMySQL(mysqlScheme, rest)
	if err != nil {
		return nil, err
	}
	return mysqlConfig(mysqlScheme, a, p)
}

// FileRedisOptions are what a file says of a Redis.
func FileRedisOptions(path string) (*redis.UniversalOptions, error) {
	c, err := readFile(path)
	if err != nil {
		return nil, err
	}
	o, _, err := RedisOptions(c.store())
	return o, err
}

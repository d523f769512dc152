package open

import (
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

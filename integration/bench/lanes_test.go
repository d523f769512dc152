package main_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/integration/servers"
)

// seen counts the commands that pass it.
type seen struct{ commands atomic.Int64 }

func (s *seen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *seen) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (s *seen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The backend's own tests run with the oldest go-redis it works with. What it reads of a
// client's inside must be there in the one that is measured, too.
func TestCallsGoByLanesWithTheGoRedisOfTheTable(t *testing.T) {
	t.Parallel()
	s, err := servers.StartRedis(servers.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, hooked := range []bool{false, true} {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr})
		var hook seen
		if hooked {
			rdb.AddHook(&hook)
		}
		d := redislease.New(rdb, nil)
		_, err := d.Join(t.Context(), driver.Join{Claim: driver.Claim{
			Ref: driver.Ref{ID: driver.ID{1}, Keys: []string{"lane"}}, Weight: 1, Capacity: 1,
			Life: driver.Life{Hold: time.Minute, Wait: time.Minute},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if used := rdb.PoolStats().TotalConns > 0; used != hooked {
			t.Errorf("with hooks: %t; the user's connections are used: %t", hooked, used)
		}
		if passed := hook.commands.Load() > 0; passed != hooked {
			t.Errorf("with hooks: %t; they see commands: %t", hooked, passed)
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	}
}

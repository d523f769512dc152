package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/integration/servers"
)

// redisServer is a server on the core for servers, and what it says about its work.
type redisServer struct{ *servers.Redis }

func (p plan) startRedis() (*redisServer, error) {
	r, err := servers.StartRedis(servers.RedisOptions{Args: []string{"--slowlog-max-len", "20000"}})
	if err != nil {
		return nil, err
	}
	err = p.cores.bindServer(r.PID())
	if err == nil {
		p.versions["Redis"], err = r.Info(context.Background(), "server", "redis_version")
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &redisServer{r}, nil
}

// withRedis runs what needs a server.
func (p plan) withRedis(use func(s *redisServer) error) error {
	s, err := p.startRedis()
	if err != nil {
		return err
	}
	defer s.Close()
	return use(s)
}

// do sends one command that is only to succeed.
func (s *redisServer) do(ctx context.Context, words ...any) error {
	_, err := s.Command(ctx, words...)
	return err
}

// usage is what INFO counts of one command.
type usage struct {
	calls int
	usec  float64
}

// used answers what was done of some commands. Redis counts what scripts call under the
// same names, so name only what clients send and scripts do not.
func (s *redisServer) used(ctx context.Context, commands ...string) (usage, error) {
	info, err := s.Admin().Info(ctx, "commandstats").Result()
	if err != nil {
		return usage{}, err
	}
	var u usage
	for line := range strings.Lines(info) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		for _, c := range commands {
			if name != "cmdstat_"+c {
				continue
			}
			var calls int
			var usec float64
			if _, err := fmt.Sscanf(rest, "calls=%d,usec=%g", &calls, &usec); err != nil {
				return u, fmt.Errorf("%q: %w", line, err)
			}
			u.calls, u.usec = u.calls+calls, u.usec+usec
		}
	}
	return u, nil
}

// cpu answers the processor time that the server has used.
func (s *redisServer) cpu(ctx context.Context) (time.Duration, error) {
	user, err := s.number(ctx, "cpu", "used_cpu_user")
	if err != nil {
		return 0, err
	}
	system, err := s.number(ctx, "cpu", "used_cpu_sys")
	return time.Duration((user + system) * float64(time.Second)), err
}

// memory answers the bytes that the server has allocated, without the buffers of its
// clients.
func (s *redisServer) memory(ctx context.Context) (float64, error) {
	all, err := s.number(ctx, "memory", "used_memory")
	if err != nil {
		return 0, err
	}
	buffers, err := s.number(ctx, "memory", "mem_clients_normal")
	return all - buffers, err
}

func (s *redisServer) number(ctx context.Context, section, field string) (float64, error) {
	text, err := s.Info(ctx, section, field)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

// longest answers the longest call of a script while f ran, by the server's own clock.
func (s *redisServer) longest(ctx context.Context, f func() error) (time.Duration, error) {
	for _, words := range [][]any{{"CONFIG", "SET", "slowlog-log-slower-than", "50"}, {"SLOWLOG", "RESET"}} {
		if err := s.do(ctx, words...); err != nil {
			return 0, err
		}
	}
	if err := f(); err != nil {
		return 0, err
	}
	if err := s.do(ctx, "CONFIG", "SET", "slowlog-log-slower-than", "-1"); err != nil {
		return 0, err
	}
	entries, err := s.Admin().SlowLogGet(ctx, -1).Result()
	if err != nil {
		return 0, err
	}
	longest := 50 * time.Microsecond // what is quicker is not logged
	for _, e := range entries {
		if strings.EqualFold(e.Args[0], "evalsha") {
			longest = max(longest, e.Duration)
		}
	}
	return longest, nil
}

// pipelined sends many commands, some hundred at a time.
func pipelined(ctx context.Context, rdb *redis.Client, n int, add func(pipe redis.Pipeliner, i int)) error {
	const depth = 256
	for from := 0; from < n; from += depth {
		pipe := rdb.Pipeline()
		for i := from; i < min(from+depth, n); i++ {
			add(pipe, i)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

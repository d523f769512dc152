package redislease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

// rights tries every command the scripts run, on keys of its own, and names those the
// user may not run. From inside a script the server would not say which it was.
func (d *Driver) rights(ctx context.Context) error {
	line := d.naming.line("check:" + rand.Text())
	order, expiries, claims := line+orderSide, line+expirySide, line+claimSide
	list := line + ":l" // in a line's life the order is of one type
	commands := [][]any{
		{"time"},
		{"set", line, "x", "px", 1000},
		{"get", line},
		{"mget", line},
		{"pttl", line},
		{"pexpire", line, 1000},
		{"pexpireat", line, "4102444800000"},
		{"exists", line},
		{"type", line},
		{"zadd", order, 1, "x"},
		{"zadd", expiries, 1, "x"},
		{"zscore", order, "x"},
		{"zmscore", order, "x"},
		{"zrank", order, "x"},
		{"zrange", order, 0, 0},
		{"zrangebyscore", order, 0, 1},
		{"zrem", order, "x"},
		{"hset", claims, "x", "y"},
		{"hsetnx", claims, "z", "y"},
		{"hexists", claims, "x"},
		{"hget", claims, "x"},
		{"hmget", claims, "x"},
		{"hdel", claims, "x"},
		{"rpush", list, "x"},
		{"lindex", list, 0},
		{"lrange", list, 0, 0},
		{"lset", list, 0, ""},
		{"lrem", list, 0, ""},
		{"rpush", list, "x"},
		{"lpop", list},
		{"del", line, order, expiries, claims},
		{"eval", "return false", 1, line},
		{"evalsha", strings.Repeat("0", 40), 1, line},
	}
	n, err := d.node(ctx, line)
	if err != nil {
		return err
	}
	cmds := make([]*redis.Cmd, len(commands))
	got := make(chan struct{})
	go func() { // a silent server must not hold the caller back
		defer close(got)
		pipe := n.rdb.Pipeline()
		for i, args := range commands {
			cmds[i] = redis.NewCmd(d.life, args...)
			_ = pipe.Process(d.life, cmds[i])
		}
		_, _ = pipe.Exec(d.life) // each command has its error
	}()
	select {
	case <-got:
	case <-ctx.Done():
		return ended(ctx)
	}
	return missing(commands, cmds)
}

// missing names the rights that are not there, of all commands at once.
func missing(commands [][]any, cmds []*redis.Cmd) error {
	var names []string
	var cause error
	for i, cmd := range cmds {
		switch code(cmd.Err()) {
		case "NOPERM":
			names = append(names, fmt.Sprint(commands[i][0]))
			cause = cmd.Err()
		case "NOSCRIPT", "MOVED", "ASK":
		case "":
			if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
				return classify(err)
			}
		default:
			return classify(cmd.Err())
		}
	}
	if cause == nil {
		return nil
	}
	return fmt.Errorf("redislease: %w: the user lacks the right (ACL) to run %s on keys that begin with hasp: %w",
		driver.ErrRefused, strings.Join(names, ", "), cause)
}

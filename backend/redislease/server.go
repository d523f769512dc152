package redislease

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

// flavour asks the server once what it understands.
func (n *node) flavour(ctx context.Context, rdb runner) (flavour, error) {
	if known := n.speaks.Load(); known > 0 {
		return flavour(known - 1), nil
	}
	cmd := redis.NewStringCmd(ctx, "info", "server")
	err := rdb.Process(ctx, cmd)
	f := modern
	switch {
	case code(err) == "NOPERM": // it may not be asked: most are modern
	case err != nil:
		return 0, classify(err)
	default:
		if f, err = speaking(properties(cmd.Val())); err != nil {
			return 0, err
		}
	}
	n.speaks.Store(int32(f) + 1)
	return f, nil
}

// speaking is what a server of that version understands. Valkey and others say in
// redis_version which Redis they are like.
func speaking(info map[string]string) (flavour, error) {
	version := info["redis_version"]
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	switch a, b := number(major), number(minor); {
	case a >= 7, a == 0: // 0: it does not say
		return modern, nil
	case a == 6 && b >= 2:
		return old, nil
	}
	return 0, fmt.Errorf("redislease: %w: the server is Redis %s, 6.2 is the oldest that works", driver.ErrRefused, version)
}

// properties reads the answer to INFO.
func properties(info string) map[string]string {
	p := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			p[name] = value
		}
	}
	return p
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

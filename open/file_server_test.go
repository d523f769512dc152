package open_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/open"
)

// opened makes a client of a store, with the settings of its file.
func opened(t *testing.T, s *open.Store, err error) *hasp.Client {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	set := s.Settings()
	c, err := hasp.New(s.Driver(), &hasp.Options{Prefix: set.Prefix, Lock: hasp.LockOptions{TTL: set.TTL, Grace: set.Grace, Wait: set.Wait}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(context.WithoutCancel(t.Context())), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// However a program was told of a server, all of them lock the same keys of it.
func TestProgramsWithURLFileAndEnvironmentExcludeEachOther(t *testing.T) {
	const password = "p@ss: s3cret"
	asked := func(port int) *redis.Options {
		o := plain(port)
		o.Password = password
		return o
	}
	port := startRedis(t, asked, func(port int) []string { return append(onPort(port), "--requirepass", password) })
	toml := fmt.Sprintf("[redis]\nhost = \"127.0.0.1\"\nport = %d\npassword = %q\nkeyPrefix = \"shop\"\n[simba.redis]\nttl = \"20s\"\n", port, password)
	yaml := fmt.Sprintf("prefix: 'shop:lock:'\nurl: redis://:p%%40ss%%3A%%20s3cret@127.0.0.1:%d\n", port)
	clients := make(map[string]*hasp.Client)
	add := func(name string, s *open.Store, err error) {
		t.Helper()
		if err == nil && strings.Contains(s.String(), "s3cret") {
			t.Errorf("%s: the store says its password", name)
		}
		clients[name] = opened(t, s, err)
	}
	s, err := open.File(write(t, "a.toml", toml), nil)
	add("TOML", s, err)
	s, err = open.File(write(t, "a.yaml", yaml), nil)
	add("YAML", s, err)
	t.Run("environment", func(t *testing.T) { // whose variables are read now and not later
		for name, value := range map[string]string{
			"HASP_REDIS_HOST": "127.0.0.1", "HASP_REDIS_PORT": strconv.Itoa(port), "HASP_REDIS_PASSWORD": password, "HASP_REDIS_KEY_PREFIX": "shop",
		} {
			t.Setenv(name, value)
		}
		s, err = open.File(write(t, "b.toml", ""), nil)
	})
	add("environment", s, err)
	s, err = open.URL(fmt.Sprintf("redis://:p%%40ss%%3A%%20s3cret@127.0.0.1:%d", port), nil)
	if err != nil {
		t.Fatal(err)
	}
	clients["URL"] = opened(t, s, nil).Sub("shop:lock:")
	for holder, c := range clients {
		lease, err := c.Mutex("order:1").TryLock(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", holder, err)
		}
		for name, other := range clients {
			if _, err := other.Mutex("order:1").TryLock(t.Context()); !errors.Is(err, hasp.ErrHeld) {
				t.Errorf("%s beside %s: %v", name, holder, err)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	line, err := clients["URL"].Inspect(t.Context(), "order:1")
	if err != nil || len(line.Holders) != 0 {
		t.Errorf("%+v, %v", line, err)
	}
}

func TestAWrongPasswordOfAFileIsRefusedAndNotShown(t *testing.T) {
	t.Parallel()
	port := startRedis(t, func(port int) *redis.Options {
		o := plain(port)
		o.Password = "right"
		return o
	}, func(port int) []string { return append(onPort(port), "--requirepass", "right") })
	s, err := open.File(write(t, "a.toml", fmt.Sprintf("[redis]\nport = %d\nhost = \"127.0.0.1\"\npassword = \"s3cret\"\n", port)), nil)
	c := opened(t, s, err)
	_, err = c.Mutex("k").TryLock(t.Context())
	if !errors.Is(err, driver.ErrRefused) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}

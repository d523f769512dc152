package redislease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

// startCluster starts three masters that share the slots.
func startCluster(t *testing.T) (servers []*server, rdb *redis.ClusterClient) {
	t.Helper()
	ctx := t.Context()
	const masters, slots = 3, 16384
	var addrs []string
	for i := range masters {
		s := startServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
		servers, addrs = append(servers, s), append(addrs, s.addr)
		c := s.client(t)
		if err := c.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil { // slot by slot: Redis 6.2 knows no ranges
			t.Fatal(err)
		}
		if err := c.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			t.Fatal(err)
		}
		host, port, _ := strings.Cut(servers[0].addr, ":")
		if err := c.ClusterMeet(ctx, host, port).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ready := 0
		for _, s := range servers {
			info := s.client(t).ClusterInfo(ctx).Val()
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") {
				ready++
			}
		}
		if ready == masters {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the cluster does not come up")
		}
	}
	rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = rdb.Close() })
	return servers, rdb
}

//nolint:paralleltest // as TestSuite
func TestSuiteOnCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite runs once in short mode")
	}
	_, rdb := startCluster(t)
	for _, slot := range []string{"", "one"} {
		t.Run("slot "+slot, func(t *testing.T) { //nolint:paralleltest // one after the other
			drivertest.Run(t, drivertest.Suite{Width: 8, Open: func() (*drivertest.Store, error) {
				return &drivertest.Store{
					Client: func() (driver.Driver, error) {
						return redislease.New(rdb, &redislease.Options{Slot: slot}), nil
					},
				}, nil
			}})
		})
	}
}

// Keys with braces in any place work, and several keys are refused unless they share a
// slot, never done by halves.
func TestClusterKeys(t *testing.T) {
	t.Parallel()
	_, rdb := startCluster(t)
	p := newParty(t, rdb, nil)
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range awkward {
		a, b := p.claim(key), p.claim(key)
		p.joins(&a, driver.Holding)
		p.joins(&b, driver.Waiting)
		p.renews(&a, driver.Holding)
		p.leaves(&a, driver.Left)
		p.renews(&b, driver.Holding)
		p.leaves(&b, driver.Left)
	}
	several := p.claim("a", "b", "c")
	_, err := p.Join(t.Context(), driver.Join{Claim: several})
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "Options.Slot") {
		t.Errorf("several slots: %v, want ErrUnsupported that names Options.Slot", err)
	}
	q := newParty(t, rdb, &redislease.Options{Slot: "{odd"})
	s := q.claim("a", "b", "c")
	q.joins(&s, driver.Holding)
	q.leaves(&s, driver.Left)
}

// A slot that moves to another master takes its line along; calls find it there.
// A client of one server locks what lies there, and is told which client it should be
// as soon as something does not.
func TestAClientOfOneServerOfAClusterIsRefused(t *testing.T) {
	t.Parallel()
	servers, _ := startCluster(t)
	p := newParty(t, servers[0].client(t), nil)
	for range 100 {
		_, err := p.Join(t.Context(), driver.Join{Claim: p.claim(newKey())})
		if err == nil {
			continue
		}
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "redis+cluster://") {
			t.Errorf("error: %v", err)
		}
		return
	}
	t.Error("no key of a hundred lay elsewhere")
}

func TestClusterSlotMoves(t *testing.T) {
	t.Parallel()
	servers, rdb := startCluster(t)
	ctx := t.Context()
	p := newParty(t, rdb, nil)
	key := newKey()
	a, b := p.claim(key), p.claim(key)
	p.joins(&a, driver.Holding)
	slot := int(rdb.ClusterKeySlot(ctx, "hasp:{"+key+"}").Val())
	ids := make([]string, len(servers))
	source := slot * len(servers) / 16384
	target := (source + 1) % len(servers)
	for i, s := range servers {
		ids[i] = s.client(t).Do(ctx, "cluster", "myid").Val().(string)
	}
	src, dst := servers[source].client(t), servers[target].client(t)
	host, port, _ := strings.Cut(servers[target].addr, ":")
	for _, err := range []error{
		dst.Do(ctx, "cluster", "setslot", slot, "importing", ids[source]).Err(),
		src.Do(ctx, "cluster", "setslot", slot, "migrating", ids[target]).Err(),
		src.Do(ctx, "migrate", host, port, "", 0, 5000, "keys", "hasp:{"+key+"}").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p.renews(&a, driver.Holding) // by ASK
	for i, s := range servers {
		if err := s.client(t).Do(ctx, "cluster", "setslot", slot, "node", ids[target]).Err(); err != nil {
			t.Fatal(i, err)
		}
	}
	p.joins(&b, driver.Waiting) // by MOVED
	p.leaves(&a, driver.Left)
	p.renews(&b, driver.Holding)
	if n, err := dst.Exists(ctx, "hasp:{"+key+"}").Result(); err != nil || n != 1 {
		t.Error("the line is not where it should be:", n, err)
	}
	p.leaves(&b, driver.Left)
}

// One silent master holds nobody back whose keys lie on another.
func TestClusterSilentMaster(t *testing.T) {
	t.Parallel()
	servers, rdb := startCluster(t)
	p := newParty(t, rdb, nil)
	var items []driver.Renewal
	for i := range 60 {
		a := p.claim(fmt.Sprintf("test:%d", i))
		p.joins(&a, driver.Holding)
		items = append(items, driver.Renewal{Ref: a.Ref, Mode: driver.Extend, Life: life})
	}
	resume, err := servers[1].pause()
	if err != nil {
		t.Fatal(err)
	}
	defer resume()
	// Those of the silent server fail with the context, after the others have answered.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var fine, failed int
	p.Renew(ctx, items, func(_ int, s driver.Standing, err error) {
		switch {
		case err == nil && s.State == driver.Holding:
			if fine++; failed > 0 {
				t.Error("an answer waited for the silent server")
			}
		case errors.Is(err, driver.ErrUnavailable):
			failed++
		default:
			t.Error(s, err)
		}
	})
	if fine < 20 || failed < 5 || fine+failed != 60 {
		t.Errorf("%d renewed, %d not", fine, failed)
	}
}

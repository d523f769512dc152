package redislease_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
)

func TestReplicasMustAcknowledge(t *testing.T) {
	t.Parallel()
	master, replica := startServer(t, "--repl-diskless-sync-delay", "0"), startServer(t)
	ctx := t.Context()
	host, port, _ := strings.Cut(master.addr, ":")
	if err := replica.client(t).SlaveOf(ctx, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := master.client(t)
	for end := time.Now().Add(time.Minute); !strings.Contains(rdb.Info(ctx, "replication").Val(), "state=online"); {
		if time.Now().After(end) {
			t.Fatal("the replica does not come up")
		}
		time.Sleep(20 * time.Millisecond)
	}
	// online is not yet acknowledging: a write that has arrived is, on one connection
	conn := rdb.Conn()
	defer conn.Close()
	if err := conn.Set(ctx, newKey(), "there", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Wait(ctx, 1, time.Minute).Result(); err != nil || n != 1 {
		t.Fatalf("%d replicas acknowledge, %v", n, err)
	}
	p := newParty(t, rdb, &redislease.Options{Replicas: 1, ReplicaTimeout: 4 * time.Second})
	if !p.Features().ConfirmGrant {
		t.Error("a signalled grant need not be confirmed")
	}
	a, b := p.claim(newKey()), p.claim(newKey())
	p.joins(&a, driver.Holding)
	p.renews(&a, driver.Holding)
	resume, err := replica.pause()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Join(ctx, driver.Join{Claim: b}); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("Join without a replica: %v, want ErrUnavailable", err)
	}
	if _, err := p.renew(&a); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("Renew without a replica: %v, want ErrUnavailable", err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		page, err := p.Lines(ctx, driver.Query{Key: b.Keys[0]})
		if err == nil && len(page.Lines[0].Holders) == 0 {
			break // the claim nobody may use has left again
		}
		if time.Now().After(end) {
			t.Fatalf("the claim stays: %+v, %v", page, err)
		}
	}
	p.leaves(&a, driver.Left)
	resume()
	p.joins(&b, driver.Holding)
}

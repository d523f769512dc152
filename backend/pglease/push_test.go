package pglease_test

import (
	"context"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hasp-dev/hasp/driver"
)

// Steps that nobody waits for send no notification: it would cost each commit a lock
// that all commits of the server share.
func TestAFreeLockNotifiesNobody(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	c := newClient(t, newPool(t, url))
	conn := connect(t, url)
	exec(t, conn, "LISTEN hasp_"+hex.EncodeToString(c.inbox[:]))
	for range 20 {
		x := c.holds(time.Minute, "key")
		c.renew(x)
		c.renew(x)
		c.leave(x, driver.Left)
	}
	h, w := c.holds(time.Minute, "key"), c.claim(time.Minute, "key")
	c.join(driver.Join{Claim: w}, driver.Waiting)
	c.leave(h, driver.Left)
	ctx, stop := context.WithTimeout(t.Context(), soon)
	defer stop()
	n, err := conn.WaitForNotification(ctx)
	if err != nil || !strings.HasPrefix(n.Payload, "G") {
		t.Fatalf("the first notification is %+v, %v, want the grant", n, err)
	}
	if strings.Contains(n.Payload, hex.EncodeToString(w.ID[6:12])) {
		t.Error("the notification shows the claim's ID")
	}
	ctx, stop = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if n, err := conn.WaitForNotification(ctx); err == nil || !pgconn.Timeout(err) {
		t.Errorf("one more: %+v, %v", n, err)
	}
}

// The listening connection is made anew, and what happened meanwhile is told.
func TestALostListenerIsMadeAnew(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url)
	c, other := newClient(t, pool), newClient(t, pool)
	heard := make(chan driver.Signal, 64)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Listen(ctx, c.inbox, func(s driver.Signal) { heard <- s }) }()
	conn := connect(t, url)
	for range 3 {
		h, w := other.holds(time.Minute, "key"), c.claim(time.Minute, "key")
		w.Number = c.join(driver.Join{Claim: w}, driver.Waiting).Number
		exec(t, conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'hasp'")
		other.leave(h, driver.Left)
		late := time.After(soon)
		for granted := false; !granted; {
			select {
			case s := <-heard:
				granted = s.Kind == driver.Granted && s.ID == w.ID && s.Number == w.Number
			case <-late:
				t.Fatal("the grant is not heard")
			}
		}
		c.leave(w, driver.Left)
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("Listen ended without an error")
	}
	for end := time.Now().Add(soon); number(t, conn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'hasp'") > 0; {
		if time.Now().After(end) {
			t.Fatal("the listening connection is still there")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

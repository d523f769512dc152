//go:build linux

package main_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	main "github.com/hasp-dev/hasp/cmd/hasp"
)

func TestKT7_TheCommandDoesNotRunWithoutTheLock(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start("run", "k", "--", "sh", "-c", ": > held; sleep 60")
	p.file("held")
	for _, c := range []struct {
		code int
		args []string
	}{
		{75, []string{"run", "k", "-n"}},
		{75, []string{"run", "k", "--wait", "200ms"}},
		{75, []string{"run", "other", "k", "-n"}},
		{75, []string{"run", "k", "-n", "--shared"}},
		{69, []string{"run", "free", "--url", "sqlite:missing.db"}},
		{69, []string{"run", "free", "--wait", "500ms", "--url", "redis://127.0.0.1:1"}},
		{69, []string{"elect", "free", "--url", "redis://127.0.0.1:1"}},
		{69, []string{"cron", "free", "@every 1s", "--url", "redis://127.0.0.1:1"}},
	} {
		if got := p.do(append(c.args, "--", "touch", "ran")...); got.code != c.code {
			t.Errorf("%q: exit code %d, want %d; stderr: %s", c.args, got.code, c.code, got.err)
		}
	}
	if p.exists("ran") {
		t.Error("the command ran")
	}
}

func TestKT7_ALeaseThatIsLostBeforeTheStartStartsNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	store := memlease.NewStore()
	client, err := hasp.New(store.Driver(), &hasp.Options{Lock: hasp.LockOptions{TTL: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.WithoutCancel(t.Context()))
	lease, err := client.Mutex("k").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store.Drop("k")
	<-lease.Done()
	code, err := main.Launch(lease, "touch", p.path("ran"))
	if code != 70 || !errors.Is(err, hasp.ErrLost) {
		t.Errorf("exit code %d, %v", code, err)
	}
	if p.exists("ran") {
		t.Error("the command ran")
	}
}

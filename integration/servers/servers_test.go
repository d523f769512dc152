package servers_test

import (
	"database/sql"
	"net"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/integration/servers"
)

type closer interface{ Close() error }

// started ends the server with the test.
func started[S closer](t *testing.T, server S, err error) S {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func TestARestartedRedisKeepsNothingUnlessItIsPersistent(t *testing.T) {
	t.Parallel()
	for _, persistent := range []bool{false, true} {
		server, err := servers.StartRedis(servers.RedisOptions{Persistent: persistent})
		r := started(t, server, err)
		ctx := t.Context()
		if err := r.Admin().Set(ctx, "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		r.Kill()
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		if n := r.Admin().Exists(ctx, "k").Val(); (n == 1) != persistent {
			t.Errorf("persistent %t: %d keys after the restart", persistent, n)
		}
	}
}

func TestAPausedRedisAnswersWhenItGoesOn(t *testing.T) {
	t.Parallel()
	server, err := servers.StartRedis(servers.RedisOptions{})
	r := started(t, server, err)
	if err := r.Pause(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- r.Admin().Ping(t.Context()).Err() }()
	select {
	case err := <-answered:
		t.Errorf("a paused server answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := r.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestAReplicaThatIsCutOffDoesNotGetWhatIsWrittenLater(t *testing.T) {
	t.Parallel()
	server, err := servers.StartPair(servers.RedisOptions{})
	p := started(t, server, err)
	ctx := t.Context()
	if err := p.CutOff(); err != nil {
		t.Fatal(err)
	}
	p.Primary.Admin().Set(ctx, "k", "v", 0)
	p.Primary.Kill()
	if err := p.Promote(); err != nil {
		t.Fatal(err)
	}
	if ok := p.Replica.Admin().SetNX(ctx, "k", "w", 0).Val(); !ok {
		t.Error("the promoted replica has what was written after it was cut off")
	}
}

func TestSentinelsPromoteTheReplica(t *testing.T) {
	t.Parallel()
	server, err := servers.StartSentinels()
	s := started(t, server, err)
	s.Primary.Kill()
	if err := s.AwaitPrimary(s.Replica); err != nil {
		t.Fatal(err)
	}
}

func TestAClusterServesEverySlotAndFailsOver(t *testing.T) {
	t.Parallel()
	server, err := servers.StartCluster()
	c := started(t, server, err)
	ctx := t.Context()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := client.Set(ctx, key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Failover(ctx, c.Nodes[4]); err != nil {
		t.Fatal(err)
	}
	now, err := c.Primaries(ctx)
	if err != nil || len(now) != 3 {
		t.Fatalf("%d primaries after the failover, error %v", len(now), err)
	}
	moved := 0
	slot := int(client.ClusterKeySlot(ctx, "moving").Val())
	client.Set(ctx, "moving", "v", 0)
	from, err := client.MasterForKey(ctx, "moving")
	if err != nil {
		t.Fatal(err)
	}
	var source, target *servers.Redis
	for _, node := range now {
		if node.Addr == from.Options().Addr {
			source = node
		} else {
			target = node
		}
	}
	if err := c.MoveSlot(ctx, slot, source, target, func() error { moved++; return nil }); err != nil {
		t.Fatal(err)
	}
	if v, err := target.Admin().Get(ctx, "moving").Result(); v != "v" || moved == 0 {
		t.Errorf("the moved key is %q (%v), %d keys moved", v, err, moved)
	}
}

func TestDatabaseServersListenUntilTheyAreClosed(t *testing.T) {
	t.Parallel()
	postgres, err := servers.StartPostgres("fsync=off")
	p := started(t, postgres, err)
	maria, err := servers.StartMariaDB("--innodb-flush-log-at-trx-commit=0")
	m := started(t, maria, err)
	for _, addr := range []string{p.Addr, m.Addr} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	for _, server := range []closer{p, m} {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, addr := range []string{p.Addr, m.Addr} {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_ = conn.Close()
			t.Errorf("somebody listens on %s after the server was closed", addr)
		}
	}
}

// Of two servers of a kind each has its own data.
func TestDatabaseServersShareNothing(t *testing.T) {
	t.Parallel()
	for range 2 {
		maria, err := servers.StartMariaDB("--innodb-flush-log-at-trx-commit=0")
		m := started(t, maria, err)
		execute(t, "mysql", m.DSN(""), "CREATE DATABASE mine")
		postgres, err := servers.StartPostgres("fsync=off")
		p := started(t, postgres, err)
		execute(t, "pgx", p.URL(), "CREATE DATABASE mine")
	}
}

func execute(t *testing.T, driver, address, statement string) {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Error(err)
	}
}

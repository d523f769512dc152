package integration_test

import (
	"strings"
	"testing"

	"github.com/hasp-dev/hasp/integration/process"
	"github.com/hasp-dev/hasp/integration/servers"
)

func commandOnPostgres(t *testing.T, binary string) {
	p := must(servers.StartPostgres("fsync=off"))(t)
	t.Cleanup(func() { wantNil(t, p.Close()) })
	c := command{t, binary, p.URL()}
	c.onSQL()
	nobody := command{t, binary, strings.Replace(c.url, "postgres@", "nobody:hunter2@", 1)}
	nobody.ends(nobody.start("ls"), 69, "postgres://"+p.Addr+"/postgres")
	c.loses(func() { wantNil(t, p.Close()) })
}

func commandOnMariaDB(t *testing.T, binary string) {
	m := must(servers.StartMariaDB("--innodb-flush-log-at-trx-commit=0"))(t)
	t.Cleanup(func() { wantNil(t, m.Close()) })
	c := command{t, binary, "mysql://root@" + m.Addr + "/mysql?prefix=locks_"}
	c.onSQL()
	nobody := command{t, binary, strings.Replace(c.url, "root@", "root:hunter2@", 1)}
	nobody.ends(nobody.start("ls"), 69, "mysql://"+m.Addr+"/mysql")
	c.loses(func() { wantNil(t, m.Close()) })
}

// onSQL is what hasp does on every database.
func (c command) onSQL() {
	c.t.Helper()
	c.ends(c.start("ls"), 69, "hasp migrate")
	c.ends(c.start("migrate", "--dry-run"), 0, "CREATE ")
	c.ends(c.start("run", "k", "-n", "--", "echo", "ran"), 69, "hasp migrate")
	var all []*process.Process
	for range 3 {
		all = append(all, c.start("migrate"))
	}
	for _, p := range all {
		c.ends(p, 0, "is ready")
	}
	c.ends(c.start("migrate", "--json"), 0, `"migrated": true`)
	holder := c.start("run", "k", "--ttl", "30s", "--", "sh", "-c", "echo holding; sleep 60")
	wantNil(c.t, holder.Await("holding"))
	waiter := c.start("run", "k", "--", "echo", "ran")
	c.waiting(1)
	c.ends(c.start("run", "k", "-n", "--", "true"), 75, "is held by")
	c.ends(c.start("ls"), 0, "k ")
	c.ends(c.start("release", "k"), 0, "revoked")
	c.ends(holder, 70, "revoked")
	c.ends(waiter, 0, "ran")
	c.ends(c.start("run", "a", "b", "--", "echo", "both"), 0, "both")
	c.ends(c.start("run", "g", "--permits", "1/2", "--", "sh", "-c", "exit 3"), 3, "")
	c.ends(c.start("show", "k"), 0, "k is free")
}

// loses takes the server away from under a holder.
func (c command) loses(stop func()) {
	c.t.Helper()
	holder := c.start("run", "k", "--ttl", "3s", "--", "sh", "-c", "echo holding; sleep 60")
	wantNil(c.t, holder.Await("holding"))
	stop()
	c.ends(holder, 70, "")
	c.ends(c.start("run", "k", "-n", "--", "echo", "ran"), 69, "connection refused")
}

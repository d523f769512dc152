package integration_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp/integration/process"
	"github.com/hasp-dev/hasp/integration/servers"
)

// command is the built hasp, and the store it is told.
type command struct {
	t           *testing.T
	binary, url string
}

// TestTheCommand runs hasp itself where one server of Redis, or a file, is not enough;
// cmd/hasp has the rest.
func TestTheCommand(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "hasp")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir, build.Env = filepath.Join("..", "cmd", "hasp"), append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checks := map[string]func(*testing.T, string){
		"keeps its key while sentinels promote a replica":       commandOnSentinels,
		"keeps its key while a replica of a cluster takes over": commandOnCluster,
		"works on PostgreSQL":                                   commandOnPostgres,
		"works on MariaDB":                                      commandOnMariaDB,
		"speaks TLS":                                            commandByTLS,
	}
	maps.Copy(checks, onEveryStore())
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, binary)
		})
	}
}

func (c command) start(args ...string) *process.Process {
	c.t.Helper()
	cmd := exec.Command(c.binary, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HASP_URL=" + c.url}
	p := must(process.Start(cmd, nil))(c.t)
	c.t.Cleanup(p.Kill)
	return p
}

// holder is a hasp that holds k until the file is there.
func (c command) holder(until string) *process.Process {
	c.t.Helper()
	p := c.start("run", "k", "--ttl", "30s", "--", "sh", "-c", "echo holding; while [ ! -e "+until+" ]; do sleep 0.05; done; echo done")
	wantNil(c.t, p.Await("holding"))
	return p
}

// ends waits for the end and checks exit code and output.
func (c command) ends(p *process.Process, code int, want string) {
	c.t.Helper()
	ctx, stop := context.WithTimeout(c.t.Context(), 3*soon)
	defer stop()
	err := p.Wait(ctx)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	if out := p.Output(); got != code || !strings.Contains(out, want) || strings.Contains(out, "hunter2") {
		c.t.Errorf("exit code %d, want %d and %q; output:\n%s", got, code, want, out)
	}
}

// waiting waits until n stand behind the holder of k.
func (c command) waiting(n int) {
	c.t.Helper()
	eventually(c.t, 2*soon, fmt.Sprintf("%d wait", n), func() bool { return c.shows(n) })
}

// shows says whether n stand behind the holder of k, by hasp show.
func (c command) shows(n int) bool {
	p := c.start("show", "k", "--json")
	<-p.Exited()
	return strings.Contains(p.Output(), fmt.Sprintf(`"waiting": %d`, n))
}

func commandOnSentinels(t *testing.T, binary string) {
	sentinels := must(servers.StartSentinels())(t)
	t.Cleanup(func() { wantNil(t, sentinels.Close()) })
	c := command{t, binary, sentinels.URL()}
	proceed := filepath.Join(t.TempDir(), "go")
	holder := c.holder(proceed)
	wait := func() *process.Process { return c.start("run", "k", "--ttl", "30s", "--", "echo", "ran") }
	waiter := wait()
	c.waiting(1)
	written := offset(t, sentinels.Primary, "master_repl_offset")
	eventually(t, soon, "the replica has it all", func() bool {
		return offset(t, sentinels.Replica, "slave_repl_offset") >= written
	})
	sentinels.Primary.Kill()
	wantNil(t, sentinels.AwaitPrimary(sentinels.Replica))
	eventually(t, 2*soon, "one waits, by the new primary's word", func() bool {
		select {
		case <-waiter.Exited(): // where the sentinels took longer than a call waits for an answer
			c.ends(waiter, 69, "unavailable")
			waiter = wait()
		default:
		}
		return c.shows(1)
	})
	wantNil(t, os.WriteFile(proceed, nil, 0o600))
	c.ends(holder, 0, "done")
	c.ends(waiter, 0, "ran")
	c.url = strings.Replace(c.url, "/"+servers.MasterName, "/other", 1)
	c.ends(c.start("ls"), 69, "redis+sentinel://")
}

// offset is how much of the stream of writes a server has. WAIT would speak of its own
// connection only.
func offset(t *testing.T, r *servers.Redis, field string) int {
	t.Helper()
	return must(strconv.Atoi(must(r.Info(t.Context(), "replication", field))(t)))(t)
}

func commandOnCluster(t *testing.T, binary string) {
	cluster := must(servers.StartCluster())(t)
	t.Cleanup(func() { wantNil(t, cluster.Close()) })
	c := command{t, binary, cluster.URL()}
	c.ends(c.start("run", "a", "b", "--", "true"), 69, "slot=TAG")
	one := command{t, binary, cluster.URL() + "?slot=s"}
	one.ends(one.start("run", "a", "b", "--", "echo", "both"), 0, "both")
	proceed := filepath.Join(t.TempDir(), "go")
	holder := c.holder(proceed)
	waiter := c.start("run", "k", "--ttl", "30s", "--", "echo", "ran")
	c.waiting(1)
	for _, replica := range cluster.Nodes[3:] {
		wantNil(t, cluster.Failover(t.Context(), replica))
	}
	c.waiting(1)
	wantNil(t, os.WriteFile(proceed, nil, 0o600))
	c.ends(holder, 0, "done")
	c.ends(waiter, 0, "ran")
	for _, node := range cluster.Nodes {
		single := command{t, binary, node.URL()}
		p := single.start("run", "k", "-n", "--", "true")
		<-p.Exited() // it holds where the key lies, and says elsewhere which URL it should be
		if out := p.Output(); out != "" && !strings.Contains(out, "redis+cluster://") && !strings.Contains(out, "replica") {
			t.Errorf("one of the cluster: %s", out)
		}
	}
}

package mysqllease_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/mysqllease"
)

// galera is where Debian's package galera-4, on which mariadb-server depends, has the provider.
const galera = "/usr/lib/galera/libgalera_smm.so"

// nobody runs the nodes where the tests run as root: rsync, by which a node gets the
// others' data, does not serve root's files.
const nobody = 65534

// startCluster starts a Galera cluster of n nodes, each on ports of its own.
func startCluster(t *testing.T, n int) []*server {
	t.Helper()
	if _, err := os.Stat(galera); err != nil {
		t.Fatalf("%s is missing; install it (Debian: apt-get install galera-4)", galera)
	}
	dir, err := os.MkdirTemp("", "galera") //nolint:usetesting // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var nodes []*server
	var peers []string
	for i := range n {
		s := &server{dir: filepath.Join(dir, strconv.Itoa(i)), addr: freeAddr(t)}
		for _, d := range []string{dir, s.dir, filepath.Join(s.dir, "data")} {
			ownedDir(t, d)
		}
		if i == 0 {
			if text, err := asNobody(s.install(t)).CombinedOutput(); err != nil {
				t.Fatalf("the server's data cannot be made: %v\n%s", err, text)
			}
		}
		peer := freeAddr(t)
		t.Cleanup(s.stop)
		s.startNode(t, peer, peers)
		nodes, peers = append(nodes, s), append(peers, peer)
	}
	return nodes
}

func ownedDir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // for another user
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
}

// asNobody makes a program of the server's run as a user who may serve the data.
func asNobody(cmd *exec.Cmd) *exec.Cmd {
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		for i, arg := range cmd.Args {
			if strings.HasPrefix(arg, "--user=") {
				cmd.Args[i] = "--user=" + strconv.Itoa(nobody)
			}
		}
		cmd.Dir = "/"
	}
	return cmd
}

// startNode starts a node and waits until it has joined the others.
func (s *server) startNode(t *testing.T, peer string, peers []string) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd = asNobody(exec.Command(program(t, "mariadbd"), "--no-defaults", "--datadir="+filepath.Join(s.dir, "data"), "--tmpdir="+s.dir,
		"--bind-address=127.0.0.1", "--port="+port, "--socket="+filepath.Join(s.dir, "sock"), "--pid-file="+filepath.Join(s.dir, "pid"),
		"--skip-name-resolve", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-buffer-pool-size=64M",
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON", "--wsrep-provider="+galera, "--wsrep-cluster-name="+filepath.Base(filepath.Dir(s.dir)),
		"--wsrep-cluster-address=gcomm://"+strings.Join(peers, ","), "--wsrep-node-address=127.0.0.1", "--wsrep-slave-threads=2",
		"--wsrep-sst-method=rsync", "--wsrep-sst-receive-address="+freeAddr(t),
		"--wsrep-provider-options=gcache.size=16M;gmcast.listen_addr=tcp://"+peer+";ist.recv_addr="+freeAddr(t)))
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	db := s.open(t, "")
	for end := time.Now().Add(4 * patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		name, ready := "", ""
		err := db.QueryRowContext(ctx, "SHOW STATUS LIKE 'wsrep_ready'").Scan(&name, &ready)
		cancel()
		if err == nil && ready == "ON" {
			return
		}
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	t.Fatalf("the node does not join the cluster:\n%s", text)
}

// conflicts is how many transactions a node has rolled back since another node was first.
func conflicts(t *testing.T, db *sql.DB) (n int64) {
	t.Helper()
	err := db.QueryRowContext(t.Context(), `SELECT SUM(VARIABLE_VALUE) FROM information_schema.GLOBAL_STATUS
		WHERE VARIABLE_NAME IN ('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The nodes of a Galera cluster do not see each other's row locks, and still one at a time
// holds a key: of two steps on one line the second to commit is rolled back, and tried again.
// Clients that stand in line rarely let claims in at two nodes at once; those that only try do.
// A node that has lost the others is unavailable.
//
//nolint:paralleltest // starts two servers
func TestGaleraNodesExcludeEachOther(t *testing.T) {
	nodes := startCluster(t, 2)
	name := nodes[0].database(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*patience)
	defer cancel()
	var clients []*hasp.Client
	for _, s := range nodes {
		for range 2 {
			wantTables(ctx, t, s.open(t, name))
			c, err := hasp.New(mysqllease.New(s.open(t, name), nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close(context.WithoutCancel(ctx)) })
			clients = append(clients, c)
		}
	}
	for _, key := range []string{"first", "second"} { // both nodes make the line
		contend(ctx, t, clients, key)
	}
	met := func() int64 { return conflicts(t, nodes[0].open(t, "")) + conflicts(t, nodes[1].open(t, "")) }
	inTurns := met()
	if inTurns == 0 {
		t.Error("no transaction met another node's: nothing was tried")
	}
	tryTogether(ctx, t, clients)
	atOnce := met() - inTurns
	if atOnce == 0 {
		t.Error("no TryLock met another node's: nothing was tried")
	}
	t.Logf("of transactions that met another node's there were %d in turns and %d at once", inTurns, atOnce)
	nodes[1].stop()
	for ctx.Err() == nil {
		lease, err := clients[0].Mutex("third").TryLock(ctx)
		if err == nil { // it does not know yet
			_ = lease.Release(ctx)
			continue
		}
		if !errors.Is(err, hasp.ErrUnavailable) {
			t.Errorf("%v, want ErrUnavailable", err)
		}
		return
	}
	t.Error("a node without the others goes on giving locks")
}

// tryTogether lets clients of all nodes try one lock at the same moment, many times: one
// whose line is new, and one whose line is there and empty.
func tryTogether(ctx context.Context, t *testing.T, clients []*hasp.Client) {
	t.Helper()
	last, granted := map[string]int64{}, 0
	for round := range 100 {
		key := "again"
		if round%4 == 0 {
			key = "fresh " + strconv.Itoa(round)
		}
		leases, errs := make([]*hasp.Lease, len(clients)), make([]error, len(clients))
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for i, c := range clients {
			wg.Go(func() {
				<-begin
				leases[i], errs[i] = c.With(hasp.LockOptions{TTL: time.Minute}).Mutex(key).TryLock(ctx)
			})
		}
		close(begin)
		wg.Wait()
		leases = slices.DeleteFunc(leases, func(l *hasp.Lease) bool { return l == nil })
		if len(leases) > 1 {
			t.Errorf("round %d: %d hold %q", round, len(leases), key)
		}
		for _, l := range leases {
			if l.Token() <= last[key] {
				t.Errorf("round %d: token %d of %q after %d", round, l.Token(), key, last[key])
			}
			last[key] = l.Token()
			granted++
			if err := l.Release(ctx); err != nil {
				t.Errorf("round %d: release: %v", round, err)
			}
		}
		for _, err := range errs {
			if err != nil && !errors.Is(err, hasp.ErrHeld) {
				t.Errorf("round %d: %v", round, err)
			}
		}
	}
	if granted == 0 {
		t.Error("nobody ever got a lock: nothing was tried")
	}
}

// wantTables waits until a node has the tables another one made.
func wantTables(ctx context.Context, t *testing.T, db *sql.DB) {
	t.Helper()
	err := errors.New("not asked")
	for err != nil && ctx.Err() == nil {
		err = mysqllease.New(db, nil).Check(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// contend lets clients of all nodes take a mutex and the permits of a semaphore in turn.
func contend(ctx context.Context, t *testing.T, clients []*hasp.Client, key string) {
	t.Helper()
	var wg sync.WaitGroup
	var inside, permits atomic.Int64
	var last int64 // written under the lock
	for _, c := range clients {
		wg.Go(func() {
			for range 15 {
				err := c.Mutex(key).Do(ctx, func(ctx context.Context) error {
					defer inside.Add(-1)
					if inside.Add(1) > 1 {
						t.Errorf("two hold %q", key)
					}
					lease, _ := hasp.FromContext(ctx, key)
					if lease.Token() <= last {
						t.Errorf("token %d after %d", lease.Token(), last)
					}
					last = lease.Token()
					return nil
				})
				if err != nil {
					t.Errorf("mutex: %v", err)
				}
				err = c.Semaphore(key+" permits", 2).Do(ctx, 1, func(context.Context) error {
					defer permits.Add(-1)
					if permits.Add(1) > 2 {
						t.Errorf("three hold permits of %q", key)
					}
					return nil
				})
				if err != nil {
					t.Errorf("semaphore: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

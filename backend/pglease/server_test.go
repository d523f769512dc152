package pglease_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp/backend/pglease"
)

// server is one PostgreSQL server for all tests of this package; each has a database of
// its own in it.
var server *postgres

var databases atomic.Int64

func TestMain(m *testing.M) {
	var err error
	if server, err = startPostgres(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	server.stop()
	os.Exit(code)
}

// postgres is a server process.
type postgres struct {
	dir  string
	port int
	cmd  *osexec.Cmd
	done chan error
}

func startPostgres() (*postgres, error) {
	dir, err := os.MkdirTemp("", "pglease-")
	if err != nil {
		return nil, err
	}
	p := &postgres{dir: dir, done: make(chan error, 1)}
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 { // as which PostgreSQL will not run
		owner, err := user.Lookup("postgres")
		if err != nil {
			return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres: apt-get install postgresql: %w", err)
		}
		uid, _ := strconv.Atoi(owner.Uid)
		gid, _ := strconv.Atoi(owner.Gid)
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	initdb := osexec.Command(program("initdb"), "-D", dir+"/data", "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = attributes, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	for tries := 1; ; tries++ {
		if err = p.start(attributes); err == nil || tries == 5 {
			return p, err
		}
		// Most likely somebody else has taken the port.
	}
}

// start starts the server on a port that is free now.
func (p *postgres) start(attributes *syscall.SysProcAttr) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	log, err := os.Create(p.dir + "/log")
	if err != nil {
		return err
	}
	p.cmd = osexec.Command(program("postgres"), "-D", p.dir+"/data", "-p", strconv.Itoa(p.port), "-k", p.dir, "-h", "127.0.0.1",
		"-c", "fsync=off", "-c", "max_connections=300", "-c", "autovacuum_naptime=1s", "-c", "shared_buffers=64MB", "-c", "max_locks_per_transaction=256")
	p.cmd.SysProcAttr, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = attributes, p.dir, log, log
	started := make(chan error, 1)
	go func() {
		// The death signal comes when the thread ends that started the program.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.done <- p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	return p.await()
}

// program finds a program of PostgreSQL's, which Debian keeps off the PATH.
func program(name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return found[len(found)-1]
	}
	return name
}

func (p *postgres) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.url("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case ended := <-p.done:
			text, _ := os.ReadFile(p.dir + "/log")
			return fmt.Errorf("the server ended: %w: %s", errors.Join(ended, err), text)
		case <-ctx.Done():
			return err
		}
	}
}

func (p *postgres) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", p.port, database)
}

func (p *postgres) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	late := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	<-p.done //nolint:errcheck // it was told to end
	late.Stop()
	_ = os.RemoveAll(p.dir)
}

// newDatabase makes a database with hasp's tables and answers its address.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	url := emptyDatabase(tb)
	if err := pglease.Migrate(tb.Context(), newPool(tb, url), nil); err != nil {
		tb.Fatal(err)
	}
	return url
}

func emptyDatabase(tb testing.TB) string {
	tb.Helper()
	database := fmt.Sprintf("test%d", databases.Add(1))
	conn, err := pgx.Connect(tb.Context(), server.url("postgres"))
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(tb.Context()))
	if _, err := conn.Exec(tb.Context(), "CREATE DATABASE "+database); err != nil {
		tb.Fatal(err)
	}
	return server.url(database)
}

func newPool(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(context.WithoutCancel(tb.Context()), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

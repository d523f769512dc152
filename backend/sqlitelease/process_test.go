package sqlitelease_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
)

// childMode makes the test binary a program that uses locks; childFile is its database.
const (
	childMode = "SQLITELEASE_CHILD"
	childFile = "SQLITELEASE_FILE"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		if err := child(mode, os.Getenv(childFile)); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is one process. It says "ready" when it is where its mode leads, and goes on, or
// ends, when its input says so.
func child(mode, path string) error {
	ctx := context.Background()
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return err
	}
	if mode == "migrate" {
		return sqlitelease.Migrate(ctx, db, nil)
	}
	d := sqlitelease.New(db, nil)
	c, err := hasp.New(d, &hasp.Options{Lock: hasp.LockOptions{TTL: 30 * time.Second}})
	if err != nil {
		return err
	}
	switch mode {
	case "count":
		return count(ctx, c, path+".count")
	case "hold":
		_, err = c.Mutex("key").Lock(ctx)
	case "wait":
		go c.Mutex("key").Lock(ctx) //nolint:errcheck // it waits until the process ends
		err = inLine(ctx, c, 1)
	case "keep":
		var lease *hasp.Lease
		if lease, err = c.Mutex("key").Lock(ctx); err == nil {
			err = lease.Keep(ctx, time.Minute)
		}
	case "fixed":
		_, err = c.With(hasp.LockOptions{NoRenew: true}).Mutex("key").Lock(ctx)
	case "pass":
		if _, err = c.Mutex("key").Lock(ctx); err == nil {
			err = passFile(d.LockFile())
		}
	case "close":
		if _, err = c.Mutex("key").Lock(ctx); err == nil {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			_ = c.Close(ended) // the lease is still held
		}
	default:
		err = fmt.Errorf("no mode %q", mode)
	}
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// inLine returns when n claims wait for the key.
func inLine(ctx context.Context, c *hasp.Client, n int) error {
	for {
		line, err := c.Inspect(ctx, "key")
		if err != nil || line.Waiting == n {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// passFile starts a process that inherits the lock file and outlives this one. It lives
// until its own input ends, which is this process's.
func passFile(f *os.File) error {
	cmd := exec.Command("cat")
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stdin = os.Stdin
	return cmd.Start()
}

// count adds one to the number in a file many times, under the lock.
func count(ctx context.Context, c *hasp.Client, path string) error {
	for range rounds {
		err := c.Mutex("count").Do(ctx, func(context.Context) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(b))
			if err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
			return os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
		})
		if err != nil {
			return err
		}
	}
	return c.Close(ctx)
}

const (
	rounds    = 15
	processes = 8
)

// process is a child under test.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, mode, path string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), childMode+"="+mode, childFile+"="+path)
	p.Stderr = os.Stderr
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// ready waits until the child has done what its mode says.
func (p *process) ready(t *testing.T) {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "ready" {
		t.Fatalf("the child says %q: %v", line, err)
	}
}

// kill ends the child as kill -9 does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = p.Process.Wait()
}

// newClient is a client of the test's own process.
func newClient(t *testing.T, path string) *hasp.Client {
	t.Helper()
	c, err := hasp.New(sqlitelease.New(openFile(t, path), nil), &hasp.Options{Lock: hasp.LockOptions{TTL: 5 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

func TestProcessesExcludeEachOther(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	if err := os.WriteFile(path+".count", []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := make([]*process, processes)
	for i := range all {
		all[i] = start(t, "count", path)
	}
	for _, p := range all {
		said, _ := io.ReadAll(p.out)
		if err := p.Wait(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
	b, err := os.ReadFile(path + ".count")
	if err != nil || string(b) != strconv.Itoa(processes*rounds) {
		t.Errorf("counted %s, want %d: %v", b, processes*rounds, err)
	}
}

func TestManyProcessesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	for _, table := range []string{"claims", "lines", "sessions", "meta"} {
		if _, err := db.Exec("DROP TABLE hasp_" + table); err != nil {
			t.Fatal(err)
		}
	}
	all := make([]*process, processes)
	for i := range all {
		all[i] = start(t, "migrate", path)
	}
	for _, p := range all {
		said, _ := io.ReadAll(p.out)
		if err := p.Wait(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
	if err := sqlitelease.New(db, nil).Check(t.Context()); err != nil {
		t.Error(err)
	}
}

package redislease_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a Redis of this test's own.
type server struct {
	addr  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
}

// program is what is started: HASP_REDIS_SERVER, for other versions and for Valkey, or
// what PATH has.
func program(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("HASP_REDIS_SERVER"), "redis-server"))
	if err != nil {
		tb.Fatal("redis-server is missing; install it (Debian: apt-get install redis-server)")
	}
	return path
}

// startServer starts a redis-server on a free port of the loopback, in a folder of its
// own, without persistence.
func startServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	path := program(tb)
	for range 5 {
		if s := tryServer(tb, path, args); s != nil {
			return s
		}
	}
	tb.Fatal("redis-server does not start")
	return nil
}

func tryServer(tb testing.TB, path string, args []string) *server {
	tb.Helper()
	port := freePort(tb)
	dir := tb.TempDir()
	args = append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
	}, args...)
	cmd := exec.Command(path, args...)
	log, err := os.Create(dir + "/log")
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	s := &server{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		_ = cmd.Wait()
	}()
	tb.Cleanup(func() {
		s.stop()
		_ = log.Close()
	})
	rdb := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer rdb.Close()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		select {
		case <-s.ended:
			return nil // most likely for want of the port
		default:
		}
		info, err := rdb.Info(tb.Context(), "server").Result()
		if err != nil && !strings.HasPrefix(err.Error(), "NOAUTH") {
			continue
		}
		if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r", cmd.Process.Pid)) {
			break // somebody else took the port
		}
		return s
	}
	return nil
}

func (s *server) stop() {
	select {
	case <-s.ended:
	default:
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// patient makes a client of go-redis that gives nothing up by itself.
func patient(o *redis.Options) {
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = time.Hour, time.Hour, time.Hour, time.Hour
}

// client is a client of go-redis, closed with the test.
func (s *server) client(tb testing.TB, set ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	o := &redis.Options{Addr: s.addr}
	for _, f := range set {
		f(o)
	}
	rdb := redis.NewClient(o)
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// shared is one server for tests that do nothing to it as a whole. The first test that
// asks starts it; TestMain stops it.
var shared struct {
	once   sync.Once
	server *server
	stops  []func()
}

// detached lets a server outlive the test that started it.
type detached struct{ testing.TB }

func (d detached) Cleanup(f func()) { shared.stops = append(shared.stops, f) }
func (d detached) TempDir() string {
	dir, err := os.MkdirTemp("", "redislease")
	if err != nil {
		d.Fatal(err)
	}
	shared.stops = append(shared.stops, func() { _ = os.RemoveAll(dir) })
	return dir
}

func sharedServer(tb testing.TB) *server {
	tb.Helper()
	shared.once.Do(func() { shared.server = startServer(detached{tb}) })
	if shared.server == nil {
		tb.Fatal("the shared server did not start")
	}
	return shared.server
}

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(shared.stops) - 1; i >= 0; i-- {
		shared.stops[i]()
	}
	os.Exit(code)
}

// pause stops the server's process, so that it takes what is sent and answers nothing.
func (s *server) pause() (resume func(), err error) {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func() {
		_ = s.cmd.Process.Signal(syscall.SIGCONT)
		// What was sent meanwhile has been done when a later connection is answered twice.
		rdb := redis.NewClient(&redis.Options{Addr: s.addr})
		defer rdb.Close()
		for range 2 {
			_ = rdb.Ping(context.Background()).Err()
		}
	}, nil
}

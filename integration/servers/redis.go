package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/integration/process"
)

// RedisOptions describe a Redis server. The zero value is one that keeps nothing.
type RedisOptions struct {
	// Persistent writes every command to disk before it is answered.
	Persistent bool
	// Args follow the options that every server gets, as on the command line.
	Args []string
}

// Redis is one server process. Its port and folder stay the same over restarts.
type Redis struct {
	Addr string // host:port
	Port int

	dir   string
	opts  RedisOptions
	proc  *process.Process
	admin *redis.Client
}

// StartRedis starts a server. The caller closes it.
func StartRedis(opts RedisOptions) (*Redis, error) {
	for tries := 1; ; tries++ {
		r, err := newRedis(opts)
		if err != nil {
			return nil, err
		}
		if err = r.Start(); err == nil {
			return r, nil
		}
		err = errors.Join(err, r.Close())
		if tries == portTries || !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
}

// newRedis prepares a server: its folder and a port that is free now.
func newRedis(opts RedisOptions) (*Redis, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hasp-redis-")
	if err != nil {
		return nil, err
	}
	return &Redis{Addr: net.JoinHostPort(loopback, strconv.Itoa(port)), Port: port, dir: dir, opts: opts}, nil
}

const (
	loopback  = "127.0.0.1"
	portTries = 5
)

var errPortTaken = errors.New("the port was taken")

// Start starts the server again after Kill or Stop, on the same port and folder.
func (r *Redis) Start() error {
	path, err := redisBinary()
	if err != nil {
		return err
	}
	appendOnly := "no"
	if r.opts.Persistent {
		appendOnly = "yes"
	}
	args := append([]string{
		"--port", strconv.Itoa(r.Port), "--bind", loopback, "--dir", r.dir, "--daemonize", "no",
		"--save", "", "--appendonly", appendOnly, "--appendfsync", "always",
		"--enable-debug-command", "local", "--repl-diskless-sync-delay", "0",
	}, r.opts.Args...)
	r.proc, err = process.Start(exec.Command(path, args...), nil)
	if err != nil {
		return err
	}
	if err := r.proc.Await("Ready to accept connections"); err != nil {
		r.proc.Kill()
		if strings.Contains(r.proc.Output(), "Address already in use") {
			return errPortTaken
		}
		return err
	}
	if r.admin != nil {
		_ = r.admin.Close()
	}
	r.admin = adminClient(r.Addr)
	return confirm(r.admin, r.proc.PID())
}

// adminClient speaks to the server for the tests. It tries nothing twice, and does not
// name itself, so that what it sends is what was asked for.
func adminClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DisableIdentity: true, PoolSize: 4,
		ReadTimeout: process.Limit, WriteTimeout: process.Limit,
	})
}

// confirm proves that the server that answers is the one that was started.
func confirm(c *redis.Client, pid int) error {
	ctx, stop := context.WithTimeout(context.Background(), process.Limit)
	defer stop()
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("process_id:%d\r\n", pid); !strings.Contains(info, want) {
		return fmt.Errorf("%w: another server answers on %s", errPortTaken, c.Options().Addr)
	}
	return nil
}

// Admin is a connection of the tests' own. It is another one after each Start.
func (r *Redis) Admin() *redis.Client { return r.admin }

// Command sends one command, given as words.
func (r *Redis) Command(ctx context.Context, words ...any) (any, error) {
	return r.admin.Do(ctx, words...).Result()
}

// URL is the server's address for clients.
func (r *Redis) URL() string { return "redis://" + r.Addr }

// PID is the server's process id.
func (r *Redis) PID() int { return r.proc.PID() }

// Kill ends the server as a crash does.
func (r *Redis) Kill() { r.proc.Kill() }

// Pause makes the server silent; its connections stay.
func (r *Redis) Pause() error { return r.proc.Pause() }

// Resume lets a paused server go on.
func (r *Redis) Resume() error { return r.proc.Resume() }

// Close ends the server and removes its folder.
func (r *Redis) Close() error {
	if r.proc != nil {
		r.proc.Kill()
	}
	if r.admin != nil {
		_ = r.admin.Close()
	}
	return os.RemoveAll(r.dir)
}

// Info answers one field of INFO, "" where there is none.
func (r *Redis) Info(ctx context.Context, section, field string) (string, error) {
	info, err := r.admin.Info(ctx, section).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value, nil
		}
	}
	return "", nil
}

// await asks until the answer is yes, or the limit is reached.
func await(what string, ask func(ctx context.Context) (bool, error)) error {
	ctx, stop := context.WithTimeout(context.Background(), process.Limit)
	defer stop()
	pause := 2 * time.Millisecond
	for {
		yes, err := ask(ctx)
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", process.Limit, what, errors.Join(ctx.Err(), err))
		case <-time.After(pause):
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// redisBinary finds the server, which HASP_REDIS_SERVER may name: another version, or
// Valkey.
func redisBinary() (string, error) {
	return binary(cmp.Or(os.Getenv("HASP_REDIS_SERVER"), "redis-server"), "redis-server")
}

// binary finds a program, or says which package has it.
func binary(name, debian string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is missing, and the tests need it: apt-get install %s: %w", name, debian, err)
	}
	return path, nil
}

// freePort answers a port that nobody listens on at the moment.
func freePort() (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

package open_test

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
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/open"
)

// startRedis starts a redis-server of the test's own and answers its port. asked tells
// whether it answers as the one that was started.
func startRedis(t *testing.T, asked func(port int) *redis.Options, args func(port int) []string) int {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("HASP_REDIS_SERVER"), "redis-server"))
	if err != nil {
		t.Fatal("redis-server is missing; install it (Debian: apt-get install redis-server)")
	}
	for range 5 {
		port := freePort(t)
		all := append([]string{"--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--appendonly", "no"}, args(port)...)
		cmd := exec.Command(path, all...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		if answers(t, asked(port), cmd.Process.Pid) {
			return port
		}
	}
	t.Fatal("redis-server does not start")
	return 0
}

func onPort(port int) []string { return []string{"--port", strconv.Itoa(port)} }

func plain(port int) *redis.Options {
	return &redis.Options{Addr: "127.0.0.1:" + strconv.Itoa(port), MaxRetries: -1}
}

// answers waits until the process answers; false: another one has the port.
func answers(t *testing.T, o *redis.Options, pid int) bool {
	t.Helper()
	rdb := redis.NewClient(o)
	defer rdb.Close()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if info, err := rdb.Info(t.Context(), "server").Result(); err == nil {
			return strings.Contains(info, fmt.Sprintf("process_id:%d\r", pid))
		}
	}
	return false
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func admin(t *testing.T, o *redis.Options) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// refused checks, of all at once, that URLs lead nowhere, with an error of that class
// that says why and does not repeat the password.
func refused(t *testing.T, class error, why map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for url, why := range why {
		all.Go(func() {
			err := lock(ctx, url)
			if !errors.Is(err, class) || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v; want %v and %q", url, err, class, why)
			}
		})
	}
	all.Wait()
}

func TestARedisIsOpenedByPasswordByUserAndByDatabase(t *testing.T) {
	t.Parallel()
	withPassword := func(port int) *redis.Options {
		o := plain(port)
		o.Password = "a/b?hunter2"
		return o
	}
	port := startRedis(t, withPassword, func(port int) []string {
		return append(onPort(port), "--requirepass", "a/b?hunter2")
	})
	rdb := admin(t, withPassword(port))
	if err := rdb.Do(t.Context(), "acl", "setuser", "locks", "on", ">hunter2@", "~hasp*", "resetchannels", "&hasp:*", "+@all", "-@dangerous", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	server := "127.0.0.1:" + strconv.Itoa(port)
	for _, url := range []string{
		"redis://:a%2Fb%3Fhunter2@" + server, "redis://default:a%2Fb%3Fhunter2@" + server + "/", "redis://locks:hunter2@@" + server + "/2", "redis://locks:hunter2%40@" + server + "?db=2",
	} {
		if err := lock(t.Context(), url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if keys, err := rdb.Info(t.Context(), "keyspace").Result(); err != nil || !strings.Contains(keys, "db0:") || !strings.Contains(keys, "db2:") {
		t.Errorf("databases in use: %s (%v)", keys, err)
	}
	refused(t, driver.ErrRefused, map[string]string{
		"redis://" + server:                "NOAUTH",
		"redis://:hunter2@" + server:       "WRONGPASS",
		"redis://nobody:hunter2@" + server: "WRONGPASS",
	})
	refused(t, driver.ErrUnavailable, map[string]string{"redis://:a%2Fb%3Fhunter2@" + server + "/99": "DB index is out of range"})
}

func TestATLSRedisIsOpenedByThoseWhoKnowItsAuthority(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	mine, mineKey := ca.client()
	asked := func(port int) *redis.Options {
		o, _, err := open.RedisOptions(fmt.Sprintf("rediss://localhost:%d?tls_ca=%s&tls_cert=%s&tls_key=%s", port, ca.file, mine, mineKey))
		if err != nil {
			t.Fatal(err)
		}
		return o.Simple()
	}
	port := startTLS(t, asked, ca)
	name, number := "rediss://localhost:"+strconv.Itoa(port), "rediss://127.0.0.1:"+strconv.Itoa(port)
	login := "&tls_cert=" + mine + "&tls_key=" + mineKey
	for _, url := range []string{
		name + "?tls_ca=" + ca.file + login,
		number + "?tls_ca=" + ca.file + login + "&tls_server_name=localhost",
		number + "?tls_insecure_skip_verify=true" + login,
	} {
		if err := lock(t.Context(), url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	other := newAuthority(t)
	refused(t, driver.ErrUnavailable, map[string]string{
		name + "?" + login[1:]:                    "unknown authority",
		name + "?tls_ca=" + other.file + login:    "unknown authority",
		number + "?tls_ca=" + ca.file + login:     "127.0.0.1",
		name + "?tls_ca=" + ca.file:               "", // what is said depends on who closes first
		"redis://localhost:" + strconv.Itoa(port): "",
	})
}

// startTLS starts a server that speaks TLS only, and only with those whom the authority
// has signed.
func startTLS(t *testing.T, asked func(port int) *redis.Options, ca *authority) int {
	t.Helper()
	cert, key := ca.server("localhost")
	return startRedis(t, asked, func(port int) []string {
		return []string{
			"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-auth-clients", "yes",
			"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.file,
		}
	})
}

// What makes locks worse without stopping them is told to whoever wants to know.
func TestAUserThatMayNotListenIsWarnedOf(t *testing.T) {
	t.Parallel()
	port := startRedis(t, plain, onPort)
	if err := admin(t, plain(port)).Do(t.Context(), "acl", "setuser", "deaf", "on", ">hunter2", "~hasp*", "resetchannels", "+@all", "-@dangerous", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	store, err := open.URL("redis://deaf:hunter2@127.0.0.1:"+strconv.Itoa(port), &open.Options{Warn: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	client, err := hasp.New(store.Driver(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if err := client.Close(t.Context()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) == 0 || !strings.Contains(strings.Join(told, "\n"), "signals do not arrive") {
		t.Errorf("told: %q", told)
	}
}

func TestAServerThatIsNotThereIsUnavailableInTime(t *testing.T) {
	t.Parallel()
	server := "127.0.0.1:" + strconv.Itoa(freePort(t))
	refused(t, driver.ErrUnavailable, map[string]string{
		"redis://:hunter2@" + server:                                           "connection refused",
		"rediss://:hunter2@" + server:                                          "connection refused",
		"redis+sentinel://:hunter2@" + server + "/m?sentinel_password=hunter2": "connection refused",
		"redis+cluster://:hunter2@" + server:                                   "connection refused",
	})
	if os.Getenv("HASP_SOAK") == "1" { // a network that swallows
		refused(t, driver.ErrUnavailable, map[string]string{"redis://:hunter2@192.0.2.1": ""})
	}
}

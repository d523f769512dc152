//go:build linux

package main_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// secret is in the URLs of these tests and must be in nothing that is printed.
const secret = "hunter2/@"

// redisPlace is a place whose store is a Redis of its own.
type redisPlace struct {
	*place
	server *exec.Cmd
	admin  *redis.Client
	addr   string
}

func newRedisPlace(t *testing.T) *redisPlace {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("HASP_REDIS_SERVER"), "redis-server"))
	if err != nil {
		t.Fatal("redis-server is missing; install it (Debian: apt-get install redis-server)")
	}
	for range 5 {
		p := &redisPlace{place: &place{t: t, dir: t.TempDir()}, addr: freeAddr(t)}
		_, port, _ := net.SplitHostPort(p.addr)
		p.server = exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--requirepass", secret)
		if err := p.server.Start(); err != nil {
			t.Fatal(err)
		}
		p.admin = redis.NewClient(&redis.Options{Addr: p.addr, Password: secret, MaxRetries: -1})
		t.Cleanup(func() {
			_ = p.admin.Close()
			_ = p.server.Process.Kill()
			_ = p.server.Wait()
		})
		if p.answers() {
			p.url = "redis://:hunter2%2F%40@" + p.addr
			return p
		}
	}
	t.Fatal("redis-server does not start")
	return nil
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// answers waits until the server answers; false: another one has the port.
func (p *redisPlace) answers() bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if info, err := p.admin.Info(p.t.Context(), "server").Result(); err == nil {
			return strings.Contains(info, fmt.Sprintf("process_id:%d\r", p.server.Process.Pid))
		}
	}
	return false
}

func (p *redisPlace) tell(words ...any) {
	p.t.Helper()
	if err := p.admin.Do(p.t.Context(), words...).Err(); err != nil {
		p.t.Fatal(err)
	}
}

// says checks an exit code and a part of stderr, and that neither a password is printed
// nor what the client library would log.
func (p *redisPlace) says(code int, want string, got result) {
	p.t.Helper()
	p.want(code, got)
	if !strings.Contains(got.err, want) {
		p.t.Errorf("stderr %q, want %q", got.err, want)
	}
	if all := got.out + got.err; strings.Contains(all, "hunter2") || strings.Contains(all, "redis: 20") {
		p.t.Errorf("printed: %s", all)
	}
}

func TestRedisLocksAreRunShownAndReleased(t *testing.T) {
	t.Parallel()
	p := newRedisPlace(t)
	holder := p.start("run", "k", "--", "sh", "-c", "echo $HASP_TOKEN > token; : > held; sleep 60")
	p.file("held")
	waiter := p.start("run", "k", "--", "sh", "-c", "echo $HASP_TOKEN > later")
	p.waiting(1)
	s := p.show("k")
	if token := strings.TrimSpace(p.read("token")); len(s.Holders) != 1 || s.Holders[0].Token != token || !strings.HasSuffix(s.Holders[0].Name, pidText(holder)) {
		t.Errorf("PZ-4: shown %+v, the command saw token %s", s, token)
	}
	p.says(75, "is held by", p.do("run", "k", "-n", "--", "touch", "ran"))
	var lines []shown
	if got := p.do("ls", "--json"); json.Unmarshal([]byte(got.out), &lines) != nil || len(lines) != 1 || lines[0].Waiting != 1 {
		t.Errorf("ls: %s", got.out)
	}
	p.says(1, "", p.do("release", "other"))
	p.says(0, "", p.do("release", "k"))
	p.says(70, "revoked", p.end(holder))
	p.says(0, "", p.end(waiter))
	first, second := strings.TrimSpace(p.read("token")), strings.TrimSpace(p.read("later"))
	if len(second) < len(first) || second <= first {
		t.Errorf("token %s after %s", second, first)
	}
	if p.exists("ran") {
		t.Error("what was not to wait ran")
	}
	p.says(0, "", p.do("run", "a", "b", "--", "true"))
	p.says(0, "", p.do("run", "g", "--permits", "1/2", "--", "true"))
	p.says(3, "", p.do("run", "r", "--shared", "--", "sh", "-c", "exit 3"))
}

func TestRedisHasNothingToMigrate(t *testing.T) {
	t.Parallel()
	url := "redis://:hunter2@127.0.0.1:1/3"
	for args, want := range map[string]string{
		"":                 "redis://127.0.0.1:1/3 has no tables: nothing to migrate\n",
		"--dry-run":        "-- redis://127.0.0.1:1/3 has no tables: nothing to migrate\n",
		"--json":           `"tables": false,` + "\n  " + `"migrated": false`,
		"--json --dry-run": `"migrated": false`,
	} {
		code, stdout, stderr := call(t, []string{"HASP_URL=" + url}, append([]string{"migrate"}, strings.Fields(args)...)...)
		if code != 0 || !strings.Contains(stdout, want) || stderr != "" || strings.Contains(stdout, "hunter2") {
			t.Errorf("migrate %s: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

func TestXR1_AfterAKillARedisLockIsFreeWhenItsTTLIsOver(t *testing.T) {
	t.Parallel()
	p := newRedisPlace(t)
	holder := p.start("run", "k", "--ttl", "2s", "--", "sh", "-c", stubborn)
	pids := p.stubborn()
	next := p.start("run", "k", "--", "sh", "-c", `for pid in "$@"; do [ -e /proc/$pid ] && cat /proc/$pid/stat; done; :`, "sh",
		pidOf(pids[0]), pidOf(pids[1]), pidOf(pids[2]), pidOf(pids[3]))
	p.waiting(1)
	p.kill(holder.Process.Pid, syscall.SIGKILL)
	got := p.end(next)
	p.says(0, "", got)
	wantNoneRuns(t, got.out)
	p.dead(pids...)
}

func TestLL1_ASilentRedisEndsTheCommandBeforeAnyoneElseHolds(t *testing.T) {
	t.Parallel()
	p := newRedisPlace(t)
	holder := p.start("run", "k", "--ttl", "2s", "--", "sh", "-c", stubborn)
	pids := p.stubborn()
	waiter := p.start("run", "k", "--ttl", "2s", "--", "touch", "ran")
	p.waiting(1)
	p.kill(p.server.Process.Pid, syscall.SIGSTOP)
	p.dead(pids...)
	p.says(70, "", p.end(holder))
	p.says(69, p.addr, p.end(waiter)) // BH-1: it gives up, and says whose silence it was
	if p.exists("ran") {
		t.Error("the waiter ran without an answer")
	}
	p.kill(p.server.Process.Pid, syscall.SIGCONT)
	p.says(0, "", p.do("run", "k", "--wait", "20s", "--", "true"))
}

func TestLL2_ARedisThatIsKilledEndsTheCommand(t *testing.T) {
	t.Parallel()
	p := newRedisPlace(t)
	holder := p.start("run", "k", "--ttl", "2s", "--", "sh", "-c", stubborn)
	pids := p.stubborn()
	p.kill(p.server.Process.Pid, syscall.SIGKILL)
	p.dead(pids...)
	p.says(70, "", p.end(holder))
	var all []*process
	for _, args := range [][]string{{"ls"}, {"show", "k"}, {"release", "k"}, {"run", "k", "--wait", "1s", "--", "touch", "ran"}, {"run", "k", "-n", "--", "touch", "ran"}} {
		all = append(all, p.start(args...))
	}
	for _, h := range all {
		got := p.end(h)
		p.says(69, "connection refused", got)
		if got.took > patience { // 5 s, on a machine that has nothing else to do
			t.Errorf("%v took %s", h.Args, got.took)
		}
	}
	if p.exists("ran") {
		t.Error("a command ran without a lock")
	}
}

func TestWhatARedisRefusesIs69AndSaysWhatMendsIt(t *testing.T) {
	t.Parallel()
	p := newRedisPlace(t)
	for url, want := range map[string]string{
		"redis://" + p.addr:                    "the server asks for a password",
		"redis://:hunter2@" + p.addr:           "user or password is wrong",
		"redis://hunter2:hunter2%2F@" + p.addr: "user or password is wrong",
	} {
		for _, args := range [][]string{{"ls"}, {"ls", "--json"}, {"run", "k", "-n"}} {
			args = append(args, "--url", url)
			if args[0] == "run" {
				args = append(args, "--", "touch", "ran")
			}
			p.says(69, want, p.do(args...))
		}
	}
	p.says(69, "cluster support disabled", p.do("ls", "--url", strings.Replace(p.url, "redis:", "redis+cluster:", 1)))
	p.tell("set", "hasp:{theirs}", "something")
	p.says(69, "foreign value", p.do("run", "theirs", "-n", "--", "touch", "ran"))
	p.tell("config", "set", "maxmemory-policy", "allkeys-lru")
	p.says(69, "allow_eviction=true", p.do("run", "k", "-n", "--", "touch", "ran"))
	p.says(0, "", p.do("run", "k", "-n", "--url", p.url+"?allow_eviction=true", "--", "true"))
	p.tell("config", "set", "maxmemory-policy", "noeviction")
	p.tell("replicaof", "127.0.0.1", "1")
	p.says(69, "replica", p.do("run", "k", "-n", "--", "touch", "ran"))
	p.tell("replicaof", "no", "one")
	p.says(0, "", p.do("run", "k", "-n", "--", "true"))
	if p.exists("ran") {
		t.Error("a command ran although its lock was refused")
	}
}

func TestTheRedisURLComesFromAFileAndTheCommandSeesNeitherURLNorSocket(t *testing.T) {
	t.Parallel()
	p := newRedisPlace(t)
	if err := os.WriteFile(p.path("url"), []byte(p.url+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const look = `env > env; ls -l /proc/self/fd > fds; tr '\0' ' ' < /proc/$PPID/cmdline > guard`
	cmd := p.command("run", "k", "--url-file", p.path("url"), "--", "sh", "-c", look)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	p.says(0, "", p.end(p.begin(cmd)))
	for _, name := range []string{"env", "fds", "guard"} {
		if text := p.read(name); text == "" || strings.Contains(text, "hunter2") || strings.Contains(text, "socket:") {
			t.Errorf("RI-5: %s: %s", name, text)
		}
	}
	p.says(0, "", p.do("run", "k", "--pass-url", "--", "sh", "-c", `[ "$HASP_URL" = "`+p.url+`" ]`))
}

func TestANoteSaysThatARedisDoesNotLetHaspListen(t *testing.T) {
	t.Parallel()
	p := newRedisPlace(t)
	p.tell("acl", "setuser", "deaf", "on", ">hunter2", "~hasp*", "resetchannels", "+@all", "-@dangerous", "+info")
	url := "redis://deaf:hunter2@" + p.addr
	p.says(0, "signals do not arrive", p.do("run", "k", "-n", "--url", url, "--", "true"))
	got := p.do("run", "k", "-n", "--url", url, "--json", "--", "true")
	var note struct{ Note, Message, Error string }
	if err := json.Unmarshal([]byte(got.err), &note); err != nil || note.Note != "store" || note.Error != "" || note.Message == "" {
		t.Errorf("stderr %s (%v)", got.err, err)
	}
	if got := p.do("run", "k", "-n", "--url", url, "--quiet", "--", "true"); got.code != 0 || got.err != "" {
		t.Errorf("exit code %d, stderr %s", got.code, got.err)
	}
}

// Commands on one key run one after the other.
func TestACounterBehindRedisLosesNothing(t *testing.T) {
	t.Parallel()
	p := newRedisPlace(t)
	p.write("n", "0")
	const workers = 8
	var all []*process
	for range workers {
		all = append(all, p.start("run", "k", "--", "sh", "-c", "n=$(cat n); sleep 0.02; echo $((n + 1)) > n"))
	}
	for _, h := range all {
		p.says(0, "", p.end(h))
	}
	if got := strings.TrimSpace(p.read("n")); got != strconv.Itoa(workers) {
		t.Errorf("counted %s of %d", got, workers)
	}
}

func TestTheRightsInTheDocumentationAreEnough(t *testing.T) {
	t.Parallel()
	p := newRedisPlace(t)
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```text\nACL SETUSER hasp ")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatal("docs/operating.md has no ACL SETUSER")
	}
	words := []any{"acl", "setuser", "hasp"}
	for word := range strings.FieldsSeq(strings.ReplaceAll(block, "PASSWORD", "hunter2")) {
		words = append(words, word)
	}
	p.tell(words...)
	p.url = "redis://hasp:hunter2@" + p.addr
	holder := p.start("run", "k", "--", "sh", "-c", ": > held; sleep 60")
	p.file("held")
	waiter := p.start("run", "k", "--", "true")
	p.waiting(1)
	p.says(0, "", p.do("ls"))
	p.says(0, "", p.do("run", "a", "b", "--", "true"))
	p.says(0, "", p.do("run", "r", "--shared", "--", "true"))
	p.says(0, "", p.do("release", "k"))
	p.says(70, "revoked", p.end(holder))
	p.says(0, "", p.end(waiter))
	denied, err := p.admin.Do(t.Context(), "acl", "log").Slice()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range denied {
		entry, _ := d.(map[any]any)
		if object := fmt.Sprint(entry["object"]); !strings.HasPrefix(object, "client") { // the client library names itself where it may
			t.Errorf("denied: %v", entry)
		}
	}
}

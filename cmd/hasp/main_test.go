//go:build linux

package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	main "github.com/hasp-dev/hasp/cmd/hasp"
)

// call runs Main with an environment that knows no store.
func call(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = main.Main(t.Context(), args, env, main.Streams{Out: &out, Err: &err})
	return code, out.String(), err.String()
}

func TestRS7_WrongUsageIs64AndSaysWhatWasExpected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string // separated by spaces
		want string // in the message
	}{
		{"", "a command is missing"},
		{"rnu", "unknown command"},
		{"run", "put -- between the keys and the command"},
		{"run k true", "put -- between"},
		{"run -- true", "name at least one key"},
		{"run k --", "name a command"},
		{"run k --nope -- true", "--nope"},
		{"run k --wait 5 -- true", "500ms, 30s or 2h"},
		{"run k --wait soon -- true", "500ms, 30s or 2h"},
		{"run k --wait -1s -- true", "not negative"},
		{"run k -n --wait 1s -- true", "give one of the two"},
		{"run k --ttl 0 -- true", "from 100ms to 720h"},
		{"run k --ttl -1s -- true", "not negative"},
		{"run k --ttl 99ms -- true", "TTL is 99ms"},
		{"run k --ttl 721h -- true", "TTL is 721h"},
		{"run k --grace -1s -- true", "not negative"},
		{"run k --max-hold x -- true", "500ms, 30s or 2h"},
		{"run k --permits 2 -- true", "k/n"},
		{"run k --permits 0/2 -- true", "k/n"},
		{"run k --permits 3/2 -- true", "k/n"},
		{"run k --permits 1/2 --shared -- true", "give one of the two"},
		{"run a b --shared -- true", "take one key, not 2"},
		{"run a b --permits 1/2 -- true", "take one key, not 2"},
		{"run k --conflict-code 256 -- true", "from 0 to 255"},
		{"run k --conflict-code x -- true", "--conflict-code"},
		{"run k --url nonsense -- true", "scheme and a colon"},
		{"run k --url sqllite:x -- true", "did you mean sqlite?"},
		{"run k --url etcd://:secret@host -- true", "does not know etcd: stores yet"},
		{"run k --url redis://:secret@ -- true", "server 1 in the redis URL must have a host"},
		{"run k --url redis://:secret@host:port -- true", "from 1 to 65535"},
		{"run k --url redis://:se/secret@host -- true", "%2F"},
		{"run k --url redis://secret@host -- true", "without a password"},
		{"run k --url redis://:secret@host?poolsize=5 -- true", "did you mean pool_size?"},
		{"run k --url redis://:secret@host?password=secret -- true", "redis://USER:PASSWORD@HOST"},
		{"ls --url redis+sentinel://:secret@host", "must name the master"},
		{"migrate --url rediss://:secret@host?tls_ca=/nonexistent", "tls_ca"},
		{"run k --url sqlite:x --local -- true", "local"},
		{"run k --url sqlite:x --url-file y -- true", "url-file"},
		{"run k --url-file /nonexistent/file -- true", "--url-file"},
		{"ls a b", "at most 1"},
		{"show", "one key"},
		{"show a b", "one key"},
		{"release", "one key"},
		{"release k --token 1x", "--token"},
		{"release k --token -5", "--token"},
		{"migrate x", "unknown command"},
		{"version x", "unknown command"},
	} {
		home := t.TempDir()
		code, stdout, stderr := call(t, []string{"HOME=" + home}, strings.Fields(c.args)...)
		if code != 64 || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "secret") || stdout != "" {
			t.Errorf("hasp %s: exit code %d, stdout %q, stderr %q; want 64 and %q", c.args, code, stdout, stderr, c.want)
		}
		if last := strings.TrimSuffix(stderr, "\n"); !strings.HasPrefix(last[strings.LastIndexByte(last, '\n')+1:], "hasp: ") {
			t.Errorf("hasp %s: stderr does not end with a line of hasp's: %q", c.args, stderr)
		}
	}
}

func TestErrorsAreJSONOnRequest(t *testing.T) {
	t.Parallel()
	code, _, stderr := call(t, nil, "show", "k", "--json")
	var e struct {
		Error, Message string
		Code           int
	}
	if err := json.Unmarshal([]byte(stderr), &e); err != nil || code != 64 || e.Code != 64 || e.Error != "usage" || e.Message == "" {
		t.Errorf("exit code %d, stderr %s (%v)", code, stderr, err)
	}
}

// full is an output with no room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAnOutputThatCannotBeWrittenIs74(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"HOME=" + dir}
	for _, args := range [][]string{{"ls"}, {"ls", "--json"}, {"show", "k"}, {"show", "k", "--json"}, {"migrate"}, {"version"}, {"completion", "bash"}} {
		var stderr bytes.Buffer
		code := main.Main(t.Context(), append(args, "--quiet"), env, main.Streams{Out: full{}, Err: &stderr})
		if code != 74 || !strings.Contains(stderr.String(), "the output cannot be written: no space left on device") {
			t.Errorf("hasp %v: exit code %d, want 74; stderr: %s", args, code, stderr.String())
		}
	}
}

// A variable that is not set must not turn into a lock that excludes nobody elsewhere.
func TestAnEmptyURLIsRefused(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--url", "--url-file"} {
		code, _, stderr := call(t, []string{"HOME=" + t.TempDir()}, "run", "k", flag, "", "--", "true")
		if code != 64 || !strings.Contains(stderr, flag) || !strings.Contains(stderr, "empty") {
			t.Errorf("%s: exit code %d; stderr: %s", flag, code, stderr)
		}
	}
}

func TestAMessageNamesTheProgramOnce(t *testing.T) {
	t.Parallel()
	_, _, stderr := call(t, []string{"HOME=" + t.TempDir()}, "run", "k", "--quiet", "--ttl", "1ms", "--", "true")
	if strings.Count(stderr, "hasp") != 1 || strings.Contains(stderr, `""`) {
		t.Errorf("stderr: %s", stderr)
	}
}

func TestTheStoreIsChosenByFlagThenEnvironmentThenHome(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, empty, two := write("good", "sqlite:/file\n"), write("empty", "\n"), write("two", "sqlite:/a\nsqlite:/b\n")
	home, state, url := "HOME="+dir, "XDG_STATE_HOME="+dir+"/state", "HASP_URL=sqlite:/env"
	for _, c := range []struct {
		name  string
		flags main.StoreFlags
		env   []string
		want  string // the URL, or a part of the error
	}{
		{"flag before environment", main.StoreFlags{URL: "sqlite:/flag"}, []string{url, home}, "sqlite:/flag"},
		{"file before environment", main.StoreFlags{URLFile: good}, []string{url, home}, "sqlite:/file"},
		{"environment", main.StoreFlags{}, []string{url, home}, "sqlite:/env"},
		{"local whatever the environment", main.StoreFlags{Local: true}, []string{url, home}, "sqlite:" + dir + "/.local/state/hasp/hasp.db"},
		{"the last of two wins", main.StoreFlags{}, []string{"HASP_URL=sqlite:/first", url}, "sqlite:/env"},
		{"an empty variable is none", main.StoreFlags{}, []string{"HASP_URL=", home}, "sqlite:" + dir + "/.local/state/hasp/hasp.db"},
		{"state folder", main.StoreFlags{}, []string{home, state}, "sqlite:" + dir + "/state/hasp/hasp.db"},
		{"a relative state folder is none", main.StoreFlags{}, []string{home, "XDG_STATE_HOME=rel"}, "sqlite:" + dir + "/.local/state/hasp/hasp.db"},
		{"a path that needs escapes", main.StoreFlags{}, []string{"HOME=/a?b%c#d"}, "sqlite:/a%3Fb%25c%23d/.local/state/hasp/hasp.db"},
		{"nothing", main.StoreFlags{}, nil, "neither XDG_STATE_HOME nor HOME"},
		{"a relative home", main.StoreFlags{}, []string{"HOME=rel"}, "neither XDG_STATE_HOME nor HOME"},
		{"an URL is required", main.StoreFlags{}, []string{home, "HASP_REQUIRE_URL=1"}, "HASP_REQUIRE_URL is set"},
		{"an URL is required, also with --local", main.StoreFlags{Local: true}, []string{home, url, "HASP_REQUIRE_URL=1"}, "HASP_REQUIRE_URL is set"},
		{"an URL is required and there", main.StoreFlags{}, []string{home, url, "HASP_REQUIRE_URL=1"}, "sqlite:/env"},
		{"an URL is not required", main.StoreFlags{}, []string{home, "HASP_REQUIRE_URL=0"}, "sqlite:" + dir + "/.local/state/hasp/hasp.db"},
		{"nonsense", main.StoreFlags{}, []string{home, "HASP_REQUIRE_URL=maybe"}, "it must be 1 or 0"},
		{"an empty file", main.StoreFlags{URLFile: empty}, []string{url}, "must hold one line"},
		{"two lines", main.StoreFlags{URLFile: two}, []string{url}, "must hold one line"},
	} {
		got, err := main.Choose(c.flags, c.env)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestMigrateMakesTheFileAndDryRunDoesNot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub dir", "locks.db")
	url := "sqlite:" + path
	code, stdout, stderr := call(t, nil, "migrate", "--dry-run", "--url", url)
	if _, err := os.Stat(path); code != 0 || !strings.Contains(stdout, "CREATE TABLE") || stderr != "" || err == nil {
		t.Errorf("dry run: exit code %d, stdout %s, stderr %s, file: %v", code, stdout, stderr, err)
	}
	if code, _, stderr := call(t, nil, "migrate", "--url", url); code != 69 || stderr == "" {
		t.Errorf("without its folder: exit code %d, stderr %s", code, stderr)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = call(t, nil, "ls", "--url", url)
	if code != 69 || !strings.Contains(stderr, "hasp migrate --url 'sqlite:") {
		t.Errorf("before: exit code %d, stderr %s", code, stderr)
	}
	for range 2 {
		if code, stdout, stderr = call(t, nil, "migrate", "--url", url, "--json"); code != 0 || !strings.Contains(stdout, `"migrated": true`) {
			t.Errorf("exit code %d, stdout %s, stderr %s", code, stdout, stderr)
		}
	}
	if code, stdout, stderr = call(t, nil, "ls", "--url", url); code != 0 || !strings.HasPrefix(stdout, "KEY") {
		t.Errorf("after: exit code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
}

func TestTheLocalFileIsSaidToBeLocalUnlessQuiet(t *testing.T) {
	t.Parallel()
	env := []string{"HOME=" + t.TempDir()}
	if code, _, stderr := call(t, env, "ls"); code != 0 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "on this machine only") {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
	if code, _, stderr := call(t, env, "ls", "--quiet"); code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
}

func TestVersionHelpAndCompletionPrint(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"version":               "hasp ",
		"version --json":        `"version": `,
		"--help":                "Examples:",
		"run --help":            "It is 137, too, if",
		"ls --help":             "Examples:",
		"show --help":           "Examples:",
		"release --help":        "Examples:",
		"migrate --help":        "Examples:",
		"version --help":        "Examples:",
		"completion bash":       "bash completion",
		"completion zsh":        "#compdef hasp",
		"completion fish":       "fish completion",
		"completion powershell": "powershell completion",
	} {
		code, stdout, stderr := call(t, nil, strings.Fields(args)...)
		if code != 0 || !strings.Contains(stdout, want) || stderr != "" {
			t.Errorf("hasp %s: exit code %d, no %q in stdout %.200q, stderr %q", args, code, want, stdout, stderr)
		}
	}
}

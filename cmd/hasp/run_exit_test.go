//go:build linux

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCLI5_EveryEndHasItsExitCode(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if err := os.WriteFile(p.path("data"), []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.path("text"), []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.path("script"), []byte("#!/no/such/shell\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		code int
		args []string
		err  string
	}{
		{"success", 0, []string{"run", "k", "--", "true"}, ""},
		{"the command's own", 3, []string{"run", "k", "--", "sh", "-c", "exit 3"}, ""},
		{"segmentation fault", 139, []string{"run", "k", "--", "sh", "-c", "kill -SEGV $$"}, ""},
		{"killed", 137, []string{"run", "k", "--", "sh", "-c", "kill -KILL $$"}, ""},
		{"not there", 127, []string{"run", "k", "--", "no-such-command"}, "no-such-command: command not found"},
		{"not there, by path", 127, []string{"run", "k", "--", "./no-such-command"}, "./no-such-command: command not found"},
		{"not executable", 126, []string{"run", "k", "--", "./data"}, "permission denied"},
		{"no program", 126, []string{"run", "k", "--", "./text"}, "exec format error; a script begins with a line such as #!/bin/sh"},
		{"without its interpreter", 127, []string{"run", "k", "--", "./script"}, "./script: it is there, but not the interpreter"},
		{"a folder", 126, []string{"run", "k", "--", "/"}, "/: "},
		{"an unknown flag", 64, []string{"run", "k", "--tll", "1s", "--", "true"}, "--tll"},
		{"an invalid key", 64, []string{"run", "", "--", "true"}, "key"},
		{"the same key twice", 64, []string{"run", "k", "k", "--", "true"}, "k"},
		{"no such store", 69, []string{"run", "k", "--url", "sqlite:missing.db", "--", "true"}, "hasp migrate --url"},
		{"no database", 69, []string{"run", "k", "--url", "sqlite:data", "--", "true"}, "data"},
	} {
		got := p.do(c.args...)
		if got.code != c.code || !strings.Contains(got.err, c.err) {
			t.Errorf("%s: exit code %d, want %d and %q; stderr: %s", c.name, got.code, c.code, c.err, got.err)
		}
		if got.out != "" {
			t.Errorf("%s: stdout: %s", c.name, got.out)
		}
		if c.code < 64 && got.err != "" {
			t.Errorf("%s: stderr: %s", c.name, got.err)
		}
	}
}

func TestHeldAndWaitZeroExits75AtOnceNamingTheHolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--", "sh", "-c", ": > held; sleep 60")
	p.file("held")
	name := p.show("k").Holders[0].Name
	for _, flag := range []string{"--wait=0", "-n"} {
		got := p.do("run", "k", flag, "--", "touch", "ran")
		p.want(75, got)
		if got.took > patience {
			t.Errorf("%s took %s", flag, got.took)
		}
		for _, want := range []string{"k is held by " + name, "in line for ", "left unless it renews"} {
			if !strings.Contains(got.err, want) {
				t.Errorf("%s: no %q in %s", flag, want, got.err)
			}
		}
	}
	if p.exists("ran") {
		t.Error("the command ran although the key was held")
	}
	p.want(9, p.do("run", "k", "-n", "--conflict-code", "9", "--", "true"))
	if host, _ := os.Hostname(); !strings.Contains(name, host) || !strings.Contains(name, pidText(holder)) {
		t.Errorf("the holder is called %q, want host and process id in it", name)
	}
}

func TestWaitOneSecondExits75AfterOneSecond(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start("run", "k", "--", "sh", "-c", ": > held; sleep 60")
	p.file("held")
	got := p.do("run", "k", "--wait", "1s", "--json", "--", "true")
	p.want(75, got)
	if got.took < time.Second || got.took > time.Second+patience {
		t.Errorf("took %s", got.took)
	}
	var e struct {
		Error, Key, Holder string
		Code               int
		InLine             int64 `json:"in_line_ms"`
		ExpiresIn          int64 `json:"expires_in_ms"`
		Waited             int64 `json:"waited_ms"`
	}
	if err := json.Unmarshal([]byte(got.err), &e); err != nil {
		t.Fatalf("%v in %s", err, got.err)
	}
	if e.Error != "held" || e.Key != "k" || e.Holder == "" || e.Code != 75 || e.InLine < 1000 || e.ExpiresIn <= 0 || e.Waited < 1000 {
		t.Errorf("the error is %+v", e)
	}
}

func TestCLI8_ArgumentsAndStreamsPassUnchanged(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args := []string{"a b", `"q'`, "$HOME", "*", "", "--json", "-n", "--"}
	cmd := p.command(append([]string{"run", "k", "--", "sh", "-c", `cat; printf '<%s>' "$@"; echo err >&2`, "sh"}, args...)...)
	cmd.Stdin = strings.NewReader("from stdin\n")
	got := p.end(p.begin(cmd))
	p.want(0, got)
	if want := "from stdin\n<" + strings.Join(args, "><") + ">"; got.out != want || got.err != "err\n" {
		t.Errorf("stdout %q, want %q; stderr %q", got.out, want, got.err)
	}
}

func TestTheCommandSeesKeysAndTokenButNoStore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	env := func(args ...string) map[string]string {
		cmd := p.command(args...)
		cmd.Env = p.env("HASP_KEYS=old", "HASP_TOKEN=old", "OTHER=1")
		seen := make(map[string]string)
		for _, entry := range strings.Split(strings.TrimSpace(p.end(p.begin(cmd)).out), "\n") {
			name, value, _ := strings.Cut(entry, "=")
			seen[name] = value
		}
		return seen
	}
	one := env("run", "k", "--", "env")
	if one["HASP_KEY"] != "k" || one["OTHER"] != "1" || len(one["HASP_TOKEN"]) < 10 {
		t.Errorf("one key: %v", one)
	}
	for _, name := range []string{"HASP_URL", "HASP_KEYS"} {
		if value, there := one[name]; there {
			t.Errorf("one key: %s is %q", name, value)
		}
	}
	two := env("run", "b", `a"`, "--pass-url", "--", "env")
	if two["HASP_KEY"] != "b" || two["HASP_KEYS"] != `["b","a\""]` || two["HASP_URL"] != p.url {
		t.Errorf("two keys: %v", two)
	}
}

func TestAnInheritedFileReachesTheCommandUnderItsNumber(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("passed", "through")
	file, err := os.Open(p.path("passed"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := p.command("run", "k", "--", "sh", "-c", "cat <&3")
	cmd.ExtraFiles = []*os.File{file}
	if got := p.end(p.begin(cmd)); got.code != 0 || got.out != "through" {
		t.Errorf("exit code %d, stdout %q, stderr %s", got.code, got.out, got.err)
	}
}

func TestTheCommandHasNoFileOfTheStoreOpen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.start("run", "k", "--", "sh", "-c", "echo $$ > self; exec sleep 60")
	child, guard := p.pid("self"), p.guardOf(h)
	before, _ := os.ReadDir("/proc/self/fd")
	if files, _ := filepath.Glob(filepath.Join("/proc", pidOf(child), "fd", "*")); len(files) > len(before)+3 {
		t.Errorf("the command has %d files open", len(files))
	}
	for _, pid := range []int{child, guard} {
		files, _ := filepath.Glob(filepath.Join("/proc", pidOf(pid), "fd", "*"))
		if len(files) < 3 {
			t.Fatalf("no files of %d found", pid)
		}
		proof := 0
		for _, file := range files {
			target, _ := os.Readlink(file)
			switch {
			case strings.HasPrefix(target, p.path("locks.db-hasp-")):
				proof++
			case strings.HasPrefix(target, p.path("locks.db")):
				t.Errorf("process %d has %s open", pid, target)
			}
		}
		if want := map[int]int{child: 0, guard: 1}[pid]; proof != want {
			t.Errorf("process %d of guard %d and command %d has the lock file open %d times, want %d", pid, guard, child, proof, want)
		}
	}
}

func TestAKeyThatTheCommandAroundHoldsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	nested := func(outer, inner []string) result {
		return p.do(append(append(append([]string{"run", "--pass-url"}, outer...), "--", binary, "run"), append(inner, "--", "echo", "ran")...)...)
	}
	for name, c := range map[string]struct {
		code         int
		outer, inner []string
	}{
		"the same key":            {64, []string{"a"}, []string{"a"}},
		"one of several":          {64, []string{"a", "b"}, []string{"c", "b"}},
		"for a time":              {64, []string{"a"}, []string{"a", "--wait", "1m"}},
		"to read what is written": {64, []string{"a"}, []string{"a", "--shared"}},
		"without waiting":         {75, []string{"a"}, []string{"a", "-n"}},
		"another key":             {0, []string{"a"}, []string{"b"}},
		"to read what is read":    {0, []string{"a", "--shared"}, []string{"a", "--shared"}},
		"permits that are left":   {0, []string{"a", "--permits", "1/2"}, []string{"a", "--permits", "1/2"}},
	} {
		got := nested(c.outer, c.inner)
		if got.code != c.code || (got.out == "ran\n") != (c.code == 0) || c.code == 64 && !strings.Contains(got.err, "held for the command") {
			t.Errorf("%s: exit code %d, want %d\nstdout: %s\nstderr: %s", name, got.code, c.code, got.out, got.err)
		}
	}
}

func TestTheExitCodeCountsThoughNobodyReadsWhatIsSaid(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for code, command := range map[int][]string{
		5:   {"run", "k", "--local", "--", "sh", "-c", "exit 5"}, // after the line about the local file
		70:  {"run", "lost", "--ttl", "500ms", "--max-hold", "500ms", "--", "sleep", "60"},
		127: {"run", "missing", "--", "no-such-command"},
		141: {"run", "pipe", "--", "sh", "-c", "kill -PIPE $$"}, // the command dies of it, as without hasp
	} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = read.Close()
		cmd := p.command(command...)
		cmd.Stdout, cmd.Stderr = write, write
		_ = cmd.Run()
		_ = write.Close()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("%v: exit code %d, want %d (%s)", command, got, code, cmd.ProcessState)
		}
	}
}

//go:build linux

package main_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// line sets the scene of a key with one holder and two waiters.
func (p *place) scene() (holder, first, second *process) {
	p.t.Helper()
	holder = p.start("run", "k", "--", "sh", "-c", ": > held; sleep 60")
	p.file("held")
	first = p.start("run", "k", "--", "true")
	p.waiting(1)
	second = p.start("run", "k", "--", "true")
	p.waiting(2)
	return holder, first, second
}

func TestOP1_ShowNamesHolderAndWaitersInOrder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder, first, second := p.scene()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	s := p.show("k")
	if len(s.Holders) != 1 || len(s.Waiters) != 2 || s.Waiting != 2 {
		t.Fatalf("shown: %+v", s)
	}
	for i, claim := range append(s.Holders, s.Waiters...) {
		h := []*process{holder, first, second}[i]
		if !strings.Contains(claim.Name, host) || !strings.HasSuffix(claim.Name, pidText(h)) {
			t.Errorf("claim %d is called %q, want host and process id %s", i, claim.Name, pidText(h))
		}
		if claim.InLine == nil || claim.ExpiresIn == nil || *claim.ExpiresIn <= 0 || len(claim.Token) < 10 {
			t.Errorf("claim %d: %+v", i, claim)
		}
	}
	table := p.do("show", "k").out
	want := regexp.MustCompile(`(?s)CLIENT +TAKES +IN LINE +TOKEN +LEFT +SINCE.*` +
		`holds +\S+` + pidText(holder) + ` +exclusive +\S+ +` + s.Holders[0].Token + ` +\S+ +\d{4}-\d\d-\d\d .*` +
		`waits 1 +\S+` + pidText(first) + ` .*waits 2 +\S+` + pidText(second) + ` `)
	if !want.MatchString(table) {
		t.Errorf("table:\n%s", table)
	}
}

func TestLsListsHeldKeysByPrefix(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder, _, _ := p.scene()
	p.start("run", "two words", "--shared", "--", "sh", "-c", ": > other; sleep 60")
	p.file("other")
	table := p.do("ls")
	p.want(0, table)
	for _, want := range []string{`(?m)^KEY +HOLDER +TAKES +IN LINE +TOKEN +LEFT +WAITING$`, `(?m)^k +\S+` + pidText(holder) + ` +exclusive .* 2$`, `(?m)^"two words" +\S+ +shared .* 0$`} {
		if !regexp.MustCompile(want).MatchString(table.out) {
			t.Errorf("no %s in\n%s", want, table.out)
		}
	}
	var lines []shown
	if err := json.Unmarshal([]byte(p.do("ls", "two", "--json").out), &lines); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 || lines[0].Key != "two words" || len(lines[0].Holders) != 1 {
		t.Errorf("lines with the prefix: %+v", lines)
	}
	if got := p.do("ls", "nothing", "--json"); got.out != "[]\n" {
		t.Errorf("no lines: %q", got.out)
	}
}

func TestKeysAreCompleted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.start("run", "order:1", "order:2", "other", "--", "sh", "-c", ": > held; sleep 60")
	p.file("held")
	for command, directive := range map[string]string{"show": ":4", "release": ":4", "ls": ":4", "run": ":0"} {
		got := p.do("__complete", command, "order:")
		if got.out != "order:1\norder:2\n"+directive+"\n" {
			t.Errorf("%s: %s", command, got.out)
		}
	}
}

func TestAFreeKeyIsShownAsFree(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if got := p.do("show", "k"); got.code != 0 || got.out != "k is free\n" {
		t.Errorf("exit code %d, stdout %q", got.code, got.out)
	}
	if s := p.show("k"); s.Key != "k" || s.Holders == nil || s.Waiters == nil {
		t.Errorf("shown: %+v", s)
	}
}

func TestOP2_ReleaseWithAWrongTokenIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.want(1, p.do("release", "k"))
	holder := p.start("run", "k", "--", "sh", "-c", ": > held; sleep 60")
	p.file("held")
	before := p.show("k").Holders[0].Token
	p.want(1, p.do("release", "k", "--force", "--token", before[:len(before)-3]))
	p.want(64, p.do("release", "k", "--token", "x"))
	if after := p.show("k").Holders[0]; after.Token != before || after.Revoked {
		t.Errorf("the holder is %+v now", after)
	}
	got := p.do("release", "k", "--force", "--token", before, "--json")
	p.want(0, got)
	var done []struct{ Key, Name, Token string }
	if err := json.Unmarshal([]byte(got.out), &done); err != nil || len(done) != 1 || done[0].Token != before {
		t.Errorf("released: %s (%v)", got.out, err)
	}
	p.want(70, p.end(holder))
	next := p.start("run", "k", "--", "sh", "-c", "echo $HASP_TOKEN > token")
	p.want(0, p.end(next))
	if after := strings.TrimSpace(p.read("token")); len(after) < len(before) || after <= before {
		t.Errorf("token %s after %s", after, before)
	}
}

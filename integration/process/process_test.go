package process_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp/integration/process"
)

func start(t *testing.T, script string) *process.Process {
	t.Helper()
	p, err := process.Start(exec.Command("sh", "-c", script), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestALineOfOutputIsAwaited(t *testing.T) {
	t.Parallel()
	p := start(t, "echo one; echo ready; exec cat")
	for range 2 { // also when it was said before
		if err := p.Await("ready"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProgramThatEndsIsNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	p := start(t, "echo no such option; exit 3")
	err := p.Await("ready")
	if err == nil || !strings.Contains(err.Error(), "no such option") {
		t.Fatalf("error %v, want one with the output", err)
	}
	if err := p.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Fatalf("ended with %v, want exit status 3", err)
	}
}

func TestAPausedProgramGoesOnAfterResume(t *testing.T) {
	t.Parallel()
	p := start(t, `while read -r line; do echo "got $line"; done`)
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.In.Write([]byte("a word\n")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.Output(), "got") {
		t.Error("a paused program answered")
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := p.Await("got a word"); err != nil {
		t.Fatal(err)
	}
}

package elect_test

import (
	"context"
	"log"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/elect"
)

// What the guide shows, so that it compiles.
func guide(ctx context.Context, client *hasp.Client, bill func(context.Context) error) error {
	err := elect.Run(ctx, client, "billing", func(ctx context.Context) error {
		return bill(ctx) // ctx ends when this process no longer leads
	}, nil)

	for leader, err := range elect.Observe(ctx, client, "billing") {
		switch {
		case err != nil:
			log.Print("not known at present: ", err) // told once for each outage; the loop goes on
		case leader.Nobody():
			log.Print("nobody leads")
		default:
			log.Print(leader.Name, " leads, term ", leader.Token)
		}
	}
	return err
}

func TestTheGuideShowsWhatCompiles(t *testing.T) {
	t.Parallel()
	_ = guide // is never called: it would lead for ever
	text, err := os.ReadFile("../docs/guides/leaders.md")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := strings.ReplaceAll(string(own), "\n\t", "\n")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	for _, b := range blocks {
		if !strings.Contains(code, b[1]) {
			t.Errorf("the guide shows what is not in guide_test.go:\n%s", b[1])
		}
	}
	if len(blocks) != 2 {
		t.Errorf("%d pieces of code in the guide, want 2", len(blocks))
	}
}

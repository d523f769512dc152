package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp"
)

// change is one change of a line, in JSON.
type change struct {
	At time.Time `json:"at"`
	line
}

func newWatch(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "watch NAME|KEY",
		Short: "Show who leads or holds as it changes",
		Long: `watch prints who leads an election, or who holds a key, and how many wait: first as it
is, then a line for each change, until it is ended. With --json each change is one
line of JSON.

What changes and changes back between two looks may be missing. A store that does not
answer is told once on stderr, and the next line says how it is since.`,
		Example: `  hasp watch billing
  hasp watch nightly --json | jq -r '.holders[].name'`,
		Args:              takes(1, "one name or key"),
		ValidArgsFunction: a.completeKey,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.watch(cmd.Context(), args[0]) },
	}
}

func (a *app) watch(ctx context.Context, key string) error {
	store, err := a.connect(ctx, nil)
	if err != nil {
		return err
	}
	defer a.disconnect(ctx, store)
	known := false // what is wrong at the start ends it; a store that is away later comes back
	for l, err := range store.Watch(ctx, key) {
		switch {
		case err == nil:
			known = true
			err = a.printChange(l, time.Now())
		case known && (errors.Is(err, hasp.ErrUnavailable) || errors.Is(err, hasp.ErrRefused)):
			a.warn("unavailable", err)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (a *app) printChange(l hasp.Line, now time.Time) error {
	if a.json {
		e := json.NewEncoder(a.Out)
		e.SetEscapeHTML(false)
		return e.Encode(change{At: now.UTC().Truncate(time.Millisecond), line: newLine(l, now)})
	}
	holders := make([]string, len(l.Holders))
	for i, s := range l.Holders {
		holders[i] = printable(s.Name) + " (token " + strconv.FormatInt(s.Token, 10)
		if what := note(s); what != "" {
			holders[i] += ", " + what
		}
		holders[i] += ")"
	}
	text := strings.Join(holders, ", ")
	if text == "" {
		text = "nobody"
	}
	if l.Waiting > 0 {
		text += ", " + strconv.Itoa(l.Waiting) + " waiting"
	}
	_, err := fmt.Fprintf(a.Out, "%s  %s\n", now.Format("2006-01-02 15:04:05.000"), text)
	return err
}

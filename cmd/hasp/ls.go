package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp"
)

// closeLimit bounds the end of a command that has nothing left to do.
const closeLimit = 5 * time.Second

func newList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the keys that are held or wanted",
		Long: `ls lists the keys that somebody holds or waits for, or those that begin with PREFIX:
one row for each holder, with its token, how long it has been in line, and the time
left to its lease if it is not renewed.`,
		Example: `  hasp ls
  hasp ls order: --json`,
		Args:              takes(0, "at most 1 prefix"),
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := ""
			if len(args) == 1 {
				prefix = args[0]
			}
			return a.list(cmd.Context(), prefix)
		},
	}
}

func (a *app) list(ctx context.Context, prefix string) error {
	store, err := a.connect(ctx, nil)
	if err != nil {
		return err
	}
	defer a.disconnect(ctx, store)
	var lines []hasp.Line
	for l, err := range store.List(ctx, prefix) {
		if err != nil {
			return err
		}
		lines = append(lines, l)
	}
	if a.json {
		out, now := []line{}, time.Now()
		for _, l := range lines {
			out = append(out, newLine(l, now))
		}
		return a.printJSON(out)
	}
	var rows [][]string
	for _, l := range lines {
		rows = append(rows, listRows(l)...)
	}
	return a.table([]string{"KEY", "HOLDER", "TAKES", "IN LINE", "TOKEN", "LEFT", "WAITING", ""}, rows)
}

// listRows are the rows of one line: a row for each holder, or one that says that
// there is none.
func listRows(l hasp.Line) [][]string {
	key, waiting := printable(l.Key), strconv.Itoa(l.Waiting)
	if len(l.Holders) == 0 {
		return [][]string{{key, "-", "-", "-", "-", "-", waiting}}
	}
	var rows [][]string
	for _, s := range l.Holders {
		rows = append(rows, append(append([]string{key}, describe(s)...), waiting, note(s)))
	}
	return rows
}

// describe are the columns that every listing has of a claim.
func describe(s hasp.Standing) []string {
	return []string{printable(s.Name), share(s), short(s.InLine), strconv.FormatInt(s.Token, 10), short(s.ExpiresIn)}
}

// disconnect ends a client that holds nothing. What goes wrong now harms nobody.
func (a *app) disconnect(ctx context.Context, store *opened) {
	disconnect(ctx, store, closeLimit)
}

// disconnect ends a client in so much time at most: what it still has to give back
// expires by itself.
func disconnect(ctx context.Context, store *opened, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	_ = bounded(ctx, func() error { return store.close(ctx) }) // a pool may wait for a silent server
}

// bounded calls what may go on for longer than ctx, and waits no longer than that.
func bounded(ctx context.Context, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", hasp.ErrUnavailable, ctx.Err())
	}
}

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp"
)

func newShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "Show who holds a key and who waits for it",
		Long: `show lists the holders of a key and then those who wait, in order. A waiter's
token is the one it will hold with. A key that nobody wants is shown as free.`,
		Example: `  hasp show nightly
  hasp show nightly --json | jq -r '.holders[].name'`,
		Args:              takes(1, "one key"),
		ValidArgsFunction: a.completeKey,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd.Context(), args[0]) },
	}
}

func (a *app) show(ctx context.Context, key string) error {
	store, err := a.connect(ctx, nil)
	if err != nil {
		return err
	}
	defer a.disconnect(ctx, store)
	l, err := store.Inspect(ctx, key)
	if err != nil {
		return err
	}
	now := time.Now()
	if a.json {
		return a.printJSON(newLine(l, now))
	}
	if len(l.Holders)+l.Waiting == 0 {
		_, err = fmt.Fprintf(a.Out, "%s is free\n", printable(key))
		return err
	}
	if err := a.table([]string{"", "CLIENT", "TAKES", "IN LINE", "TOKEN", "LEFT", "SINCE", ""}, showRows(l, now)); err != nil {
		return err
	}
	if more := l.Waiting - len(l.Waiters); more > 0 {
		_, err = fmt.Fprintf(a.Out, "and %d more\n", more)
	}
	return err
}

func showRows(l hasp.Line, now time.Time) [][]string {
	var rows [][]string
	add := func(place string, s hasp.Standing) {
		since := now.Add(-s.InLine).Format(time.DateTime)
		rows = append(rows, append(append([]string{place}, describe(s)...), since, note(s)))
	}
	for _, s := range l.Holders {
		add("holds", s)
	}
	for i, s := range l.Waiters {
		add("waits "+strconv.Itoa(i+1), s)
	}
	return rows
}

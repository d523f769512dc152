package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp"
)

// leadership is who leads, in JSON.
type leadership struct {
	Election   string    `json:"election"`
	Leader     *standing `json:"leader"` // null: nobody
	Candidates int       `json:"candidates"`
}

func newLeader(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "leader NAME",
		Short: "Show who leads an election",
		Long: `leader shows who leads the election NAME: the client, its token, how long it has been a
candidate, and the time left to its term if it is not renewed. Those who wait are
shown by hasp show.

The exit code is 1 if nobody leads.`,
		Example: `  hasp leader billing
  hasp leader billing --json | jq -r '.leader.name'`,
		Args:              takes(1, "the name of one election"),
		ValidArgsFunction: a.completeKey,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.leader(cmd.Context(), args[0]) },
	}
}

func (a *app) leader(ctx context.Context, name string) error {
	store, err := a.connect(ctx, nil)
	if err != nil {
		return err
	}
	defer a.disconnect(ctx, store)
	l, err := store.Inspect(ctx, name)
	if err != nil {
		return err
	}
	if err := a.printLeader(l); err != nil {
		return err
	}
	if len(l.Holders) == 0 {
		return exited(exitNotHeld)
	}
	return nil
}

func (a *app) printLeader(l hasp.Line) error {
	if a.json {
		out := leadership{Election: l.Key, Candidates: len(l.Holders) + l.Waiting}
		if len(l.Holders) > 0 {
			s := newStanding(l.Holders[0], time.Now())
			out.Leader = &s
		}
		return a.printJSON(out)
	}
	if len(l.Holders) == 0 {
		_, err := fmt.Fprintf(a.Out, "nobody leads %s\n", printable(l.Key))
		return err
	}
	s := l.Holders[0]
	row := []string{
		printable(s.Name), strconv.FormatInt(s.Token, 10), short(s.InLine), short(s.ExpiresIn), strconv.Itoa(l.Waiting), note(s),
	}
	return a.table([]string{"LEADER", "TOKEN", "IN LINE", "LEFT", "WAITING", ""}, [][]string{row})
}

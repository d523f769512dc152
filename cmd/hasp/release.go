package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp"
)

// releaseFlags are the flags of release.
type releaseFlags struct {
	force bool
	token string
}

func newRelease(a *app) *cobra.Command {
	f := &releaseFlags{}
	cmd := &cobra.Command{
		Use:   "release KEY",
		Short: "Take a key away from its holders",
		Long: `release revokes the leases of those who hold a key now. A holder is told, and what
it runs is ended; the next in line holds when the lease has been left or has expired,
so no two overlap. With --force the lease is removed at once, and the next may begin
while the old holder is still stopping: for a holder that is known to be gone.

The exit code is 1 if nobody holds the key, or nobody with that token.`,
		Example: `  hasp release nightly
  hasp release nightly --force
  hasp release gpu --token 111918464031552064`,
		Args:              takes(1, "one key"),
		ValidArgsFunction: a.completeKey,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.release(cmd.Context(), args[0], f) },
	}
	cmd.Flags().BoolVar(&f.force, "force", false, "free the key at once")
	cmd.Flags().StringVar(&f.token, "token", "", "only the lease with this token, as show prints it")
	return cmd
}

// released is what release prints of one lease.
type released struct {
	Key    string `json:"key"`
	Name   string `json:"name,omitempty"`
	Token  string `json:"token"`
	Forced bool   `json:"forced"`
}

func (a *app) release(ctx context.Context, key string, f *releaseFlags) error {
	wanted := int64(0)
	if f.token != "" {
		var err error
		if wanted, err = strconv.ParseInt(f.token, 10, 64); err != nil || wanted <= 0 {
			return usagef("--token is %q; it must be a token as hasp show prints it", f.token)
		}
	}
	store, err := a.connect(ctx, nil)
	if err != nil {
		return err
	}
	defer a.disconnect(ctx, store)
	done, err := store.take(ctx, key, wanted, f.force)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(done)
	}
	verb := "revoked"
	if f.force {
		verb = "removed"
	}
	for _, r := range done {
		if _, err := fmt.Fprintf(a.Out, "%s: %s the lease of %s with token %s\n", printable(key), verb, printable(r.Name), r.Token); err != nil {
			return err
		}
	}
	return nil
}

// take takes the key away from its holders, or from the one with the wanted token,
// and answers from whom. Each is named by its token, so a later holder is never hit.
func (o *opened) take(ctx context.Context, key string, wanted int64, force bool) ([]released, error) {
	l, err := o.Inspect(ctx, key)
	if err != nil {
		return nil, err
	}
	end := o.Revoke
	if force {
		end = o.ForceRelease
	}
	if wanted > 0 {
		name := ""
		for _, s := range append(l.Holders, l.Waiters...) {
			if s.Token == wanted {
				name = s.Name
			}
		}
		return []released{newReleased(key, name, wanted, force)}, end(ctx, key, wanted)
	}
	var done []released
	for _, s := range l.Holders {
		switch err := end(ctx, key, s.Token); {
		case errors.Is(err, hasp.ErrNotHeld): // it has left meanwhile
		case err != nil:
			return nil, err
		default:
			done = append(done, newReleased(key, s.Name, s.Token, force))
		}
	}
	if len(done) == 0 {
		return nil, fmt.Errorf("%w: nobody holds %s", hasp.ErrNotHeld, printable(key))
	}
	return done, nil
}

func newReleased(key, name string, token int64, force bool) released {
	return released{Key: key, Name: name, Token: strconv.FormatInt(token, 10), Forced: force}
}

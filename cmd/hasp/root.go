package main

import (
	"github.com/spf13/cobra"
)

// newRoot is the tree of commands.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "hasp",
		Short: "Run commands while holding locks",
		Long: `hasp runs commands while holding locks, and shows and takes away locks.

The locks are in the store that --url, --url-file or HASP_URL names. Without one they
are in a SQLite file of yours, which excludes on this machine only.`,
		Example: `  hasp run nightly -- ./backup.sh
  hasp run nightly --wait 30s -- ./backup.sh
  hasp ls`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(*cobra.Command, []string) error {
			return usagef("a command is missing; hasp help lists them")
		},
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; %s --help lists the flags", err, cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print JSON, errors too")
	flags.BoolVar(&a.quiet, "quiet", false, "no notes: neither that the local file excludes on this machine only, nor what slows a store down")
	a.store.register(flags)
	root.MarkFlagsMutuallyExclusive("url", "url-file", "local")
	root.AddCommand(newRun(a), newElect(a), newCron(a), newList(a), newShow(a), newLeader(a), newWatch(a), newRelease(a), newMigrate(a), newVersion(a))
	return root
}

// takes refuses more than one argument and fewer than low, saying what is wanted.
func takes(low int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || len(args) > 1 {
			return usagef("%s takes %s, not %d arguments; %s", cmd.CommandPath(), what, len(args), cmd.UseLine())
		}
		return nil
	}
}

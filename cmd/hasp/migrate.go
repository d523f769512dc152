package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp/open"
)

func newMigrate(a *app) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make the store's tables, or bring them up to date",
		Long: `migrate makes the tables of the store, or brings them up to date. A SQLite file that
is missing is made, and one that is not in WAL mode is put into it. It may run in many
processes at once, and again.`,
		Example: `  hasp migrate --url sqlite:/var/lib/app/locks.db
  hasp migrate --dry-run --url sqlite:/var/lib/app/locks.db   # print the SQL only`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.migrate(cmd.Context(), dry) },
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the SQL for an empty database and change nothing")
	return cmd
}

// migrated is what migrate prints.
type migrated struct {
	Store    string `json:"store"`
	Migrated bool   `json:"migrated"`
	SQL      string `json:"sql,omitempty"`
}

func (a *app) migrate(ctx context.Context, dry bool) error {
	c, err := a.store.choose(a.env)
	if err != nil {
		return err
	}
	store, err := open.URL(c.url, &open.Options{Create: true})
	if err != nil {
		return err
	}
	defer store.Close()
	out := migrated{Store: store.String(), Migrated: !dry}
	if dry {
		out.SQL, err = store.Schema()
	} else {
		err = migrateStore(ctx, c, store)
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	if dry {
		_, err = fmt.Fprintf(a.Out, "-- for an empty %s\n%s\n", out.Store, out.SQL)
	} else {
		_, err = fmt.Fprintf(a.Out, "%s is ready\n", out.Store)
	}
	return err
}

func migrateStore(ctx context.Context, c choice, store *open.Store) error {
	if c.local != "" {
		if err := os.MkdirAll(filepath.Dir(c.local), 0o700); err != nil {
			return refused(err)
		}
	}
	return store.Migrate(ctx)
}

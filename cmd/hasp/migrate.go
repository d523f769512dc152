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
processes at once, and again. Redis has no tables: there is nothing to migrate, which is
no mistake.`,
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
	Tables   bool   `json:"tables"` // false: the store has none
	Migrated bool   `json:"migrated"`
	SQL      string `json:"sql,omitempty"`

	dry bool
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
	text, err := store.Schema()
	if err != nil {
		return err
	}
	out := migrated{Store: store.String(), Tables: text != "", Migrated: text != "" && !dry, dry: dry}
	switch {
	case out.Migrated:
		err = migrateStore(ctx, c, store)
	case dry:
		out.SQL = text
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	_, err = fmt.Fprintln(a.Out, out)
	return err
}

// String is what people read, and where it is SQL, what a database reads.
func (m migrated) String() string {
	switch {
	case !m.Tables && m.dry:
		return fmt.Sprintf("-- %s has no tables: nothing to migrate", m.Store)
	case !m.Tables:
		return m.Store + " has no tables: nothing to migrate"
	case m.Migrated:
		return m.Store + " is ready"
	}
	return fmt.Sprintf("-- for an empty %s\n%s", m.Store, m.SQL)
}

func migrateStore(ctx context.Context, c choice, store *open.Store) error {
	if c.local != "" {
		if err := os.MkdirAll(filepath.Dir(c.local), 0o700); err != nil {
			return refused(err)
		}
	}
	return store.Migrate(ctx)
}

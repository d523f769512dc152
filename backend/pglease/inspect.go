package pglease

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/hasp-dev/hasp/driver"
)

// inspect refuses a database hasp cannot work in, saying what mends it.
func inspect(ctx context.Context, a access, n names) error {
	if err := inspectServer(ctx, a); err != nil {
		return err
	}
	if err := inspectTables(ctx, a, n); err != nil {
		return err
	}
	return inspectFunctions(ctx, a, n)
}

func inspectServer(ctx context.Context, a access) error {
	rows, err := a.query(ctx, `SELECT pg_is_in_recovery()::text, current_setting('transaction_read_only')`)
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return errColumns
	}
	if standby, readOnly := rows[0].yes(), rows[0].text(); standby || readOnly == "on" {
		return refuse("the server is a standby or read-only: connect to the primary (target_session_attrs=read-write), and check default_transaction_read_only")
	}
	return nil
}

func refuse(text string, args ...any) error {
	return fmt.Errorf("%s: %w: "+text, append([]any{name, driver.ErrRefused}, args...)...)
}

// literals writes a list of names as SQL literals. They hold no quotes.
func literals(all []string) string { return "'" + strings.Join(all, "', '") + "'" }

func inspectTables(ctx context.Context, a access, n names) error {
	t := n.tables
	quoted := []string{t.Meta, t.Claims, t.Lines, t.Sessions}
	rows, err := a.query(ctx, `SELECT to_regclass(t)::oid::text,
		(SELECT string_agg(c.attname, ',' ORDER BY k.place) FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k (number, place), pg_attribute c
			WHERE i.indrelid = to_regclass(t) AND i.indisprimary AND c.attrelid = i.indrelid AND c.attnum = k.number),
		(SELECT string_agg(r, ', ') FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS r
			WHERE to_regclass(t) IS NOT NULL AND NOT has_table_privilege(to_regclass(t)::oid, r))
		FROM unnest(ARRAY[`+literals(quoted)+`]) WITH ORDINALITY AS names (t, at) ORDER BY at`)
	if err != nil {
		return err
	}
	if len(rows) != len(quoted) {
		return errColumns
	}
	var missing []string
	for i, r := range rows {
		oid, columns, rights := r.text(), r.text(), r.text()
		table := t.Name([]string{"meta", "claims", "lines", "sessions"}[i])
		want := []string{"name", "key,number", "key", "inbox,session"}[i]
		switch {
		case oid == "":
			missing = append(missing, table)
		case columns != want:
			return refuse("table %s is not hasp's: its primary key is (%s), not (%s); drop it or choose another Options.Prefix, then run `hasp migrate`",
				table, columns, want)
		case rights != "" && (i > 0 || strings.Contains(rights, "SELECT")):
			return refuse("the user may not %s on table %s: GRANT it", rights, table)
		}
	}
	if len(missing) > 0 {
		return refuse("no table %s: run `hasp migrate`, or call pglease.Migrate", strings.Join(missing, ", "))
	}
	if err := inspectVersion(ctx, a, n); err != nil {
		return err
	}
	return inspectColumns(ctx, a, n)
}

// inspectColumns refuses tables without a column of hasp's, or with one of another type.
// Later releases may have added others.
func inspectColumns(ctx context.Context, a access, n names) error {
	table := ""
	var wanted []string
	for _, m := range regexp.MustCompile(`(?m)^CREATE TABLE IF NOT EXISTS (\{\w+\})|^  (\w+) +(\w+) +NOT NULL`).FindAllStringSubmatch(page("tables"), -1) {
		if m[1] != "" {
			table = n.expand(m[1])
			continue
		}
		wanted = append(wanted, fmt.Sprintf("('%s', '%s', '%s')", table, m[2], m[3]))
	}
	rows, err := a.query(ctx, `SELECT t, c, k FROM (VALUES `+strings.Join(wanted, ", ")+`) AS w (t, c, k) WHERE NOT EXISTS (
		SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(t) AND attname = c AND NOT attisdropped AND format_type(atttypid, atttypmod) = k)`)
	if err != nil || len(rows) == 0 {
		return err
	}
	return refuse("table %s is not hasp's: it has no column %s of type %s; drop it or choose another Options.Prefix, then run `hasp migrate`",
		rows[0].text(), rows[0].text(), rows[0].text())
}

// layoutVersion is the layout this package reads and writes.
const layoutVersion = 1

func inspectVersion(ctx context.Context, a access, n names) error {
	rows, err := a.query(ctx, n.expand(`SELECT (SELECT value FROM {meta} WHERE name = 'schema'), (SELECT value FROM {meta} WHERE name = 'oldest_client')`))
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return errColumns
	}
	schema, oldest := rows[0].number(), rows[0].number()
	switch {
	case oldest > layoutVersion:
		return refuse("the hasp tables belong to a newer release, which this one must not touch: upgrade hasp here")
	case schema < layoutVersion || oldest == 0:
		return refuse("the hasp tables belong to an older release: run `hasp migrate`, or call pglease.Migrate")
	}
	return nil
}

func inspectFunctions(ctx context.Context, a access, n names) error {
	all := functionNames()
	quoted := make([]string, len(all))
	for i, f := range all {
		quoted[i] = n.function(f)
	}
	rows, err := a.query(ctx, `SELECT coalesce(string_agg(f, ', ') FILTER (WHERE to_regproc(f) IS NULL), ''),
		coalesce(string_agg(f, ', ') FILTER (WHERE to_regproc(f) IS NOT NULL AND NOT has_function_privilege(to_regproc(f)::oid, 'EXECUTE')), '')
		FROM unnest(ARRAY[`+literals(quoted)+`]) AS f`)
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return errColumns
	}
	missing, forbidden := rows[0].text(), rows[0].text()
	if missing != "" {
		return refuse("no function %s: run `hasp migrate`, or call pglease.Migrate", missing)
	}
	if forbidden != "" {
		return refuse("the user may not EXECUTE the function %s: GRANT it", forbidden)
	}
	return nil
}

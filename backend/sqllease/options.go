package sqllease

import (
	"errors"
	"fmt"

	"github.com/hasp-dev/hasp/driver"
)

// maxIdentifier is the longest name every supported database takes, less what the
// engine puts behind a prefix.
const maxIdentifier = 40

// Options are the names of the tables. They become part of SQL text, so they are held
// to letters, digits and underscores.
type Options struct {
	// Schema holds the tables. Defaults to the schema the connection is in.
	Schema string
	// Prefix begins the name of each table and index. Defaults to "hasp_".
	Prefix string
}

// names are the checked options.
type names struct {
	schema, prefix string
}

// validate answers the names to use and everything that is wrong with the options.
func (o *Options) validate() (names, error) {
	n := names{prefix: "hasp_"}
	if o == nil {
		return n, nil
	}
	n.schema = o.Schema
	if o.Prefix != "" {
		n.prefix = o.Prefix
	}
	return n, errors.Join(
		checkIdentifier("Options.Schema", n.schema),
		checkIdentifier("Options.Prefix", n.prefix),
	)
}

func checkIdentifier(field, name string) error {
	if len(name) > maxIdentifier {
		return fmt.Errorf("%w: %s is longer than %d bytes", driver.ErrInvalid, field, maxIdentifier)
	}
	for i, r := range name {
		letter := r == '_' || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z')
		if digit := r >= '0' && r <= '9'; !letter && (!digit || i == 0) {
			return fmt.Errorf("%w: %s may have letters, digits and underscores, and begins with no digit", driver.ErrInvalid, field)
		}
	}
	return nil
}

package pglease

import (
	"context"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// Classify is classify.
func Classify(err error) sqllease.Fault { return classify(err) }

// Sweep is what the janitor does.
func (d *Driver) Sweep(ctx context.Context) error {
	_, err := d.steps.sweep(ctx)
	return err
}

//go:build !unix

package main

import (
	"context"

	"github.com/hasp-dev/hasp/cmd/hasp/internal/guard"
)

// run needs what a guard needs.
func (*app) run(context.Context, job) error { return guard.ErrUnsupported }

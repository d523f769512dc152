//go:build !unix

package main

import (
	"context"

	"github.com/hasp-dev/hasp/cmd/hasp/internal/guard"
)

// elect needs what a guard needs.
func (*app) elect(context.Context, candidacy) error { return guard.ErrUnsupported }

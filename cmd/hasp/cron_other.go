//go:build !unix

package main

import (
	"context"

	"github.com/hasp-dev/hasp/cmd/hasp/internal/guard"
)

// cron needs what a guard needs.
func (*app) cron(context.Context, timetable) error { return guard.ErrUnsupported }

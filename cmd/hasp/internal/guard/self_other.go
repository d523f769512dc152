//go:build !linux

package guard

import "os"

// Self is the file of this program.
func Self() (string, error) { return os.Executable() }

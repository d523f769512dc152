//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// findFile finds the file of a command as a shell does: a name without a slash in the
// folders of PATH. What is there but cannot be executed is told from what is not.
func findFile(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil // the kernel will tell
	}
	best := error(syscall.ENOENT)
	for _, folder := range filepath.SplitList(path) {
		file := filepath.Join(folder, name)
		info, err := os.Stat(file)
		switch {
		case name == "" || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		case err != nil:
			best = err
		case info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0:
			return file, nil
		default:
			best = syscall.EACCES
		}
	}
	return "", best
}

// Haspgen writes decorators for interfaces whose methods are to run under locks.
//
//	type Orders interface {
//		//hasp:lock key="order:{order.ID}" timeout=5s
//		Pay(ctx context.Context, order *Order) error
//	}
//
// For each interface X with such a directive it writes a type LockedX with its methods
// and a constructor NewLockedX(next X, client *hasp.Client), into hasp_locked.go in the
// package's folder. Methods of an embedded interface are locked as it says, whichever
// package declares it; those without a directive are passed on. Directives in test files
// are refused. Usage:
//
//	haspgen [-check] [packages]
//
// Without packages it is the one in the current folder. With -check nothing is written,
// and the exit status is 1 where something would be. Otherwise it is 0, or 2 when
// something is wrong, which is said with file, line and column. It prints nothing else.
//
// Attributes, with their defaults; durations are Go durations or milliseconds, or
// "${NAME:default}", which is looked up in the environment when the decorator is made:
//
//	key          a template of package keytmpl over the parameters and their fields;
//	             several: key=… key=…; of a slice each element gives a key
//	store        what the keys begin with, before a colon: lock
//	prefix       put between that and the key: none
//	expiration   TTL of the lease: 60s
//	timeout      how long to wait for the lock, 0 for not at all: 30s
//	retry        pause between attempts, at stores without a line; of no effect at others: 100ms
//	refresh      0 for a fixed lease that is not renewed, else it is renewed: 10s
//	manual       the method finds its lease by hasp.FromContext and releases it itself
//	shared       the method may run beside others that are shared
//	client       one of several clients: each name becomes a parameter of the constructor
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Exit codes.
const (
	exitOK    = 0
	exitStale = 1
	exitWrong = 2
)

func main() { os.Exit(run(".", os.Args[1:], os.Stderr)) }

// run is the command in a folder.
func run(dir string, args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("haspgen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "write nothing; exit with 1 where something would be written")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitWrong
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	changes, err := plan(dir, patterns)
	if err != nil {
		fmt.Fprintln(stderr, "haspgen:", err)
		return exitWrong
	}
	if *check {
		for _, c := range changes {
			fmt.Fprintf(stderr, "haspgen: %s is out of date: run haspgen\n", c.path)
		}
		return min(len(changes), exitStale)
	}
	for _, c := range changes {
		if err := c.write(); err != nil {
			fmt.Fprintln(stderr, "haspgen:", err)
			return exitWrong
		}
	}
	return exitOK
}

// change is a file that is to be written, or removed where there is no text.
type change struct {
	path string
	text []byte
}

// plan finds what has to change. Where anything is wrong, nothing does.
func plan(dir string, patterns []string) ([]change, error) {
	found, err := load(dir, patterns)
	if err != nil {
		return nil, err
	}
	var changes []change
	var errs []error
	for _, p := range found {
		if len(p.GoFiles) == 0 {
			continue
		}
		path := filepath.Join(filepath.Dir(p.GoFiles[0]), output)
		all, err := targets(p)
		if err = errors.Join(err, inTests(filepath.Dir(path))); err != nil {
			errs = append(errs, err)
			continue
		}
		var text []byte
		if len(all) > 0 {
			if text, err = generate(p, all); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		if old, err := os.ReadFile(path); err == nil && !bytes.Equal(old, text) || err != nil && text != nil {
			changes = append(changes, change{path: path, text: text})
		}
	}
	return changes, errors.Join(errs...)
}

func (c change) write() error {
	if c.text == nil {
		return os.Remove(c.path)
	}
	return os.WriteFile(c.path, c.text, 0o644) //nolint:gosec // source is for everybody to read
}

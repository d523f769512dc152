package main

import (
	"slices"
	"strings"
	"sync"
)

// app is what all commands share: where they print, what they are told, and the
// flags that they have in common.
type app struct {
	Streams
	env environment

	json  bool
	quiet bool
	store storeFlags
	where string // the store in use, without passwords

	telling  sync.Mutex // a line on stderr is not cut by another: stores warn when they like
	starting sync.Mutex // one guard is started after the other
}

// environment is what the process was started with.
type environment []string

// get answers a variable; an empty one counts as not set.
func (e environment) get(name string) string {
	for _, entry := range slices.Backward(e) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// without is a copy that lacks these variables.
func (e environment) without(names ...string) environment {
	return slices.DeleteFunc(slices.Clone(e), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

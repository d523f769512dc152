package hasp

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of keys, the same on every store.
const (
	maxKeyBytes = 512 // with the prefix
	maxKeys     = 64  // to one lock
)

// keySet is what a handle locks: the keys as the caller gave them, and as the store
// knows them.
type keySet struct {
	given []string // without prefix, in the caller's order
	full  []string // with prefix, sorted
	err   error    // what is wrong with them, found before any I/O
}

func newKeySet(prefix string, given ...string) keySet {
	full := make([]string, len(given))
	for i, key := range given {
		full[i] = prefix + key
	}
	set := keySet{given: given, full: full}
	if len(given) > maxKeys {
		set.err = invalidf("%d keys, at most %d can be locked together", len(given), maxKeys)
		return set
	}
	for i, key := range given {
		if set.err = checkKey(key, full[i]); set.err != nil {
			return set
		}
	}
	slices.Sort(full)
	for i := 1; i < len(full); i++ {
		if full[i] == full[i-1] {
			set.err = invalidf("key %q is given twice", strings.TrimPrefix(full[i], prefix))
			return set
		}
	}
	return set
}

func checkKey(key, full string) error {
	switch {
	case key == "":
		return invalidf("the key is empty")
	case !utf8.ValidString(full):
		return invalidf("key %q is not valid UTF-8", key)
	case strings.IndexByte(full, 0) >= 0:
		return invalidf("key %q contains a NUL byte", key)
	case len(full) > maxKeyBytes:
		return invalidf("key %.40q… has %d bytes with its prefix, at most %d are allowed", key, len(full), maxKeyBytes)
	}
	return nil
}

// first is the key that errors name.
func (k keySet) first() string { return k.given[0] }

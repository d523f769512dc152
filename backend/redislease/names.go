package redislease

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"
)

// Names of keys and channels. docs/stores.md describes them.
const (
	plainSpace = "hasp:{" // and the key, "}"
	braceSpace = "hasp~{" // and 8 hex digits, "}", the key, "}": for keys that begin with "}"
	slotSpace  = "hasp/{" // and Options.Slot, "}", the key, "}"
	inboxSpace = "hasp:i:"
	watchSpace = "hasp:w:"
)

// sides are the endings of the three keys beside a line's record.
const orderSide, expirySide, claimSide = ":q", ":x", ":n"

// naming makes the names of one driver.
type naming struct{ slot string }

// line answers the name of a key's record. Redis hashes what stands between the first
// brace and the next closing one, so the key itself is that, unless it begins with a
// closing brace: then the tag would be empty and the side keys would lie elsewhere.
// Records end with a brace and side keys do not, so no two names are the same.
func (n naming) line(key string) string {
	switch {
	case n.slot != "":
		return slotSpace + n.slot + "}" + key + "}"
	case strings.HasPrefix(key, "}"):
		return braceSpace + digest(key) + "}" + key + "}"
	}
	return plainSpace + key + "}"
}

// tag is what Redis hashes of a key's names.
func (n naming) tag(key string) string {
	name := n.line(key)
	tag, _, _ := strings.Cut(name[len(plainSpace):], "}")
	return tag
}

// key is the inverse of line.
func (n naming) key(name string) (string, bool) {
	space := plainSpace
	if n.slot != "" {
		space = slotSpace + n.slot + "}"
	}
	key, ok := strings.CutPrefix(name, space)
	if !ok && n.slot == "" {
		if key, ok = strings.CutPrefix(name, braceSpace); ok {
			_, key, ok = strings.Cut(key, "}")
		}
	}
	key, closed := strings.CutSuffix(key, "}")
	return key, ok && closed
}

// patterns are what SCAN is asked for to find the lines of a prefix.
func (n naming) patterns(prefix string) []string {
	p := globbed(prefix)
	switch {
	case n.slot != "":
		return []string{globbed(slotSpace+n.slot+"}") + p + "*}"}
	case prefix == "":
		return []string{plainSpace + "*}", braceSpace + "????????}*}"}
	case strings.HasPrefix(prefix, "}"):
		return []string{braceSpace + "????????}" + p + "*}"}
	}
	return []string{plainSpace + p + "*}"}
}

// globbed takes the meaning from what Redis' patterns know.
func globbed(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "^", `\^`).Replace(s)
}

func digest(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

func inboxChannel(inbox [6]byte) string { return inboxSpace + hex.EncodeToString(inbox[:]) }

// appendKeys appends the four keys of each line.
func (n naming) appendKeys(to []any, keys ...string) []any {
	for _, key := range keys {
		to = appendLine(to, n.line(key))
	}
	return to
}

func appendLine(to []any, line string) []any {
	return append(to, line, line+orderSide, line+expirySide, line+claimSide)
}

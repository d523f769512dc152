package redislease_test

import (
	"strings"
	"testing"

	"github.com/hasp-dev/hasp/backend/redislease"
)

// hashed is what Redis hashes of a name: what stands between the first opening brace
// and the next closing one, if that is anything.
func hashed(name string) string {
	if _, after, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return name
}

var awkward = []string{
	"a", "a}", "}", "}a", "{}", "{}a", "a{}", "a{b}c", "}{", "{", "{{a}}", "a:q", "a}:q", "a}:q}", "=a", "s}=a", "~", " ", "ключ",
	"*", "[a-z]", `\`, "%s", "0f3a2b1c}}a", strings.Repeat("x", 512), "}" + strings.Repeat("}", 511),
}

func TestAllNamesOfALineLieInOneSlot(t *testing.T) {
	t.Parallel()
	for _, slot := range []string{"", "s", "{", "s{x"} {
		for _, key := range awkward {
			names := redislease.Names(slot, key)
			for _, name := range names {
				if hashed(name) != hashed(names[0]) || hashed(name) == name {
					t.Errorf("slot %q, key %q: Redis hashes %q of %q, %q of %q", slot, key, hashed(name), name, hashed(names[0]), names[0])
				}
			}
			if got := redislease.Tag(slot, key); got != hashed(names[0]) {
				t.Errorf("slot %q, key %q: the tag is %q, Redis hashes %q", slot, key, got, hashed(names[0]))
			}
			if slot != "" && hashed(names[0]) != slot {
				t.Errorf("key %q lies in %q, not in the slot of %q", key, hashed(names[0]), slot)
			}
			if got, ok := redislease.KeyOf(slot, names[0]); !ok || got != key {
				t.Errorf("slot %q: %q is read as %q, %v, want %q", slot, names[0], got, ok, key)
			}
		}
	}
}

func TestNoTwoKeysShareAName(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, slot := range []string{"", "s", "a"} {
		for _, key := range awkward {
			for _, name := range redislease.Names(slot, key) {
				if other, ok := seen[name]; ok {
					t.Errorf("%q is a name of %q and of %q", name, other, slot+"/"+key)
				}
				seen[name] = slot + "/" + key
			}
		}
	}
}

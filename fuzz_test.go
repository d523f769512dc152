package hasp_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// Every key that is allowed is kept byte for byte, and every other is refused before
// anything is sent.
func FuzzKeys(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "order:42", "order:43"},
		{"app:", "Job-A", "job-a"},
		{"", "job-a ", "jób-a"},
		{"{x}", "}x{", "a:b"},
		{"", "", "x"},
		{"p", "a\x00b", "ab"},
		{"", "\xff\xfe", "ok"},
		{"", strings.Repeat("k", 512), strings.Repeat("k", 511)},
		{"pre", strings.Repeat("k", 510), "é"},
		{"\xc3", "\xa9", "z"},
		{"a", "b", "b"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, prefix, one, two string) {
		store := memlease.NewStore()
		client, err := hasp.New(store.Driver(), &hasp.Options{Prefix: prefix})
		if err != nil {
			if allowed(prefix+"k") && len(prefix) < 512 {
				t.Fatalf("prefix %q: %v", prefix, err)
			}
			return
		}
		defer client.Close(context.WithoutCancel(t.Context()))
		want := allowed(prefix+one) && allowed(prefix+two) && one != "" && two != "" && one != two
		lease, err := client.Mutex(one, two).TryLock(t.Context())
		if want != (err == nil) || err != nil && !errors.Is(err, hasp.ErrInvalid) {
			t.Fatalf("keys %q and %q with prefix %q: %v, want a lease: %v", one, two, prefix, err, want)
		}
		if err != nil {
			return
		}
		if !slices.Equal(lease.Keys(), []string{one, two}) {
			t.Fatalf("keys %q and %q came back as %q", one, two, lease.Keys())
		}
		for _, key := range []string{one, two} {
			line, err := client.Inspect(t.Context(), key)
			if err != nil || line.Key != key || len(line.Holders) != 1 {
				t.Fatalf("key %q: line %+v, %v", key, line, err)
			}
		}
		var listed []string
		for line, err := range client.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, line.Key)
		}
		if sorted := slices.Sorted(slices.Values([]string{one, two})); !slices.Equal(listed, sorted) {
			t.Fatalf("keys %q are listed as %q", sorted, listed)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func allowed(full string) bool {
	return full != "" && len(full) <= 512 && utf8.ValidString(full) && !strings.Contains(full, "\x00")
}

// A ticket survives its text form, is taken once, and whatever is altered in it is
// refused.
func FuzzTicket(f *testing.F) {
	f.Add("order:42", uint8(1), 0, byte(1), 0)
	f.Add("a b", uint8(2), 5, byte(0x80), 3)
	f.Add(strings.Repeat("k", 512), uint8(64), 100, byte(0xff), 1000)
	f.Add("ключ", uint8(3), -1, byte(7), 1)
	f.Fuzz(func(t *testing.T, key string, more uint8, at int, flip byte, cut int) {
		keys := []string{key}
		for i := range more % 8 {
			keys = append(keys, key+string('a'+rune(i)))
		}
		client, err := hasp.New(memlease.NewStore().Driver(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(context.WithoutCancel(t.Context()))
		lease, err := client.Mutex(keys[0], keys[1:]...).TryLock(t.Context())
		if err != nil {
			return // not keys
		}
		ticket, err := lease.Detach(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		text, err := ticket.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		alteredIsRefused(t, text, at, flip, cut)
		var back hasp.Ticket
		if err := back.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		if again, err := back.MarshalText(); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("the ticket came back as another: %v", err)
		}
		resumed, err := client.Resume(t.Context(), back)
		if err != nil {
			t.Fatal(err)
		}
		if resumed.Token() <= lease.Token() || !slices.Equal(slices.Sorted(slices.Values(resumed.Keys())), slices.Sorted(slices.Values(keys))) {
			t.Fatalf("resumed %v with token %d, detached %q with %d", resumed.Keys(), resumed.Token(), keys, lease.Token())
		}
		if _, err := client.Resume(t.Context(), ticket); !errors.Is(err, hasp.ErrNotHeld) {
			t.Fatalf("resumed a second time: %v", err)
		}
		if err := resumed.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// alteredIsRefused changes one byte of a ticket's text, and cuts it.
func alteredIsRefused(t *testing.T, text []byte, at int, flip byte, cut int) {
	t.Helper()
	altered := bytes.Clone(text)
	altered[uint(at)%uint(len(text))] ^= flip
	var got hasp.Ticket
	if err := got.UnmarshalText(altered); (err == nil) != bytes.Equal(altered, text) {
		t.Fatalf("an altered ticket: %v", err)
	} else if err != nil && !errors.Is(err, hasp.ErrInvalid) {
		t.Fatalf("an altered ticket is not ErrInvalid: %v", err)
	}
	short := text[:uint(cut)%uint(len(text))]
	if err := got.UnmarshalText(short); !errors.Is(err, hasp.ErrInvalid) {
		t.Fatalf("a ticket cut short: %v", err)
	}
}

// Whatever text it is given, a ticket is refused or comes back as it was.
func FuzzTicketText(f *testing.F) {
	f.Add([]byte("AQA"))
	f.Add([]byte(""))
	f.Add([]byte("not a ticket"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var ticket hasp.Ticket
		if err := ticket.UnmarshalText(text); err != nil {
			if !errors.Is(err, hasp.ErrInvalid) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ticket.MarshalText()
		if err != nil || !bytes.Equal(again, bytes.TrimSpace(text)) {
			t.Fatalf("%q came back as %q, %v", text, again, err)
		}
	})
}

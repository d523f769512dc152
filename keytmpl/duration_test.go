package keytmpl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/keytmpl"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	env := from("WAIT", "250", "LONG", " 2m ", "BLANK", "  ", "NEGATIVE", "-1", "WORD", "soon")
	for _, c := range []struct {
		setting string
		want    time.Duration
	}{
		{"100ms", 100 * time.Millisecond},
		{"0", 0},
		{"1500", 1500 * time.Millisecond},
		{" 3s ", 3 * time.Second},
		{"${WAIT}", 250 * time.Millisecond},
		{"${WAIT:100ms}", 250 * time.Millisecond},
		{"${LONG}", 2 * time.Minute},
		{"${NONE:100ms}", 100 * time.Millisecond},
		{"${NONE:-100ms}", 100 * time.Millisecond},
		{"${NONE:30}", 30 * time.Millisecond},
		{"${WAIT}s", 250 * time.Second},
	} {
		if got, err := keytmpl.Duration(c.setting, env); err != nil || got != c.want {
			t.Errorf("%q: %s, %v, want %s", c.setting, got, err, c.want)
		}
	}
	for _, c := range []struct{ setting, says string }{
		{"", "blank"},
		{"soon", "not a duration"},
		{"1.5", "not a duration"},
		{"-1", "negative"},
		{"-0", "negative"},
		{"-5ms", "negative"},
		{"9223372036854776", "more than"},
		{"9223372036854775808", "not a duration"},
		{"300000h0m9999999h", "not a duration"},
		{"${NONE}", "${NONE} is not set"},
		{"${NONE:}", "${NONE} is not set and its default is blank"},
		{"${BLANK:100ms}", "${BLANK} is set, but blank"},
		{"${NEGATIVE}", "${NEGATIVE}"},
		{"${NONE:--5}", "negative"},
		{"${WORD:100ms}", "${WORD:100ms}"},
		{"${WAIT", "not closed"},
		{"${}", "no name"},
		{"${:100ms}", "no name"},
	} {
		got, err := keytmpl.Duration(c.setting, env)
		if got != 0 || !errors.Is(err, hasp.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %s, %v, want an error with %q", c.setting, got, err, c.says)
		}
	}
}

func TestWithoutALookupTheEnvironmentIsAsked(t *testing.T) {
	t.Setenv("HASP_TEST_WAIT", "70")
	if got, err := keytmpl.Duration("${HASP_TEST_WAIT:1s}", nil); err != nil || got != 70*time.Millisecond {
		t.Errorf("%s, %v", got, err)
	}
}

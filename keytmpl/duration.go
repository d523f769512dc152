package keytmpl

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hasp-dev/hasp"
)

// Duration reads a duration from a setting: a Go duration such as "1.5s", or a plain
// number of milliseconds. "${NAME}" in it stands for what lookup answers for NAME, and
// "${NAME:default}", or "${NAME:-default}" as a shell writes it, for the default where
// lookup knows no NAME. A nil lookup asks the environment.
//
// A name that is unknown and has no default, a blank value, a negative or too long
// duration: an error that names the placeholder and matches [hasp.ErrInvalid].
func Duration(setting string, lookup func(name string) (string, bool)) (time.Duration, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	text, err := fill(setting, lookup)
	if err != nil {
		return 0, fmt.Errorf("%w: duration %q: %w", hasp.ErrInvalid, setting, err)
	}
	d, err := duration(strings.TrimSpace(text))
	if err != nil {
		if text == setting {
			return 0, fmt.Errorf("%w: duration %q: %w", hasp.ErrInvalid, setting, err)
		}
		return 0, fmt.Errorf("%w: duration %q, which is %q: %w", hasp.ErrInvalid, setting, text, err)
	}
	return d, nil
}

// fill puts values in the place of the placeholders.
func fill(setting string, lookup func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for rest := setting; ; {
		before, after, found := strings.Cut(rest, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		inside, next, closed := strings.Cut(after, "}")
		if !closed {
			return "", fmt.Errorf(`"${%s" is not closed by "}"`, inside)
		}
		v, err := look(inside, lookup)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
		rest = next
	}
}

// look answers the value of what stands in the braces of one placeholder.
func look(inside string, lookup func(string) (string, bool)) (string, error) {
	name, fallback, hasDefault := strings.Cut(inside, ":")
	if strings.TrimSpace(name) == "" {
		return "", fmt.Errorf("${%s} has no name", inside)
	}
	v, ok := lookup(name)
	switch {
	case ok && strings.TrimSpace(v) == "":
		return "", fmt.Errorf("${%s} is set, but blank", name)
	case ok:
		return v, nil
	case !hasDefault:
		return "", fmt.Errorf("${%s} is not set and has no default; write ${%s:100ms} to give one", name, name)
	}
	fallback = strings.TrimPrefix(fallback, "-")
	if strings.TrimSpace(fallback) == "" {
		return "", fmt.Errorf("${%s} is not set and its default is blank", name)
	}
	return fallback, nil
}

func duration(text string) (time.Duration, error) {
	if text == "" {
		return 0, errors.New(`it is blank; write a duration such as "100ms", or a number of milliseconds`)
	}
	var d time.Duration
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		if ms > math.MaxInt64/int64(time.Millisecond) {
			return 0, fmt.Errorf("%s milliseconds are more than a duration can be", text)
		}
		d = time.Duration(ms) * time.Millisecond
	} else if d, err = time.ParseDuration(text); err != nil {
		return 0, errors.New(`it is not a duration; write one such as "100ms", or a whole number of milliseconds`)
	}
	if d < 0 || strings.HasPrefix(text, "-") {
		return 0, errors.New("it is negative")
	}
	return d, nil
}

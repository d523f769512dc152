package driver_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

func manyKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strconv.Itoa(1000 + i)
	}
	return keys
}

func TestAJoinThatCannotBeRightIsInvalid(t *testing.T) {
	t.Parallel()
	good := driver.Join{Claim: driver.Claim{
		Ref: driver.Ref{Keys: manyKeys(driver.MaxKeys)}, Weight: 2, Capacity: 2,
		Life: driver.Life{Hold: time.Second, Wait: time.Second}, Name: strings.Repeat("n", driver.MaxName),
	}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*driver.Join){
		"a try without a life to wait":    func(j *driver.Join) { j.Try, j.Life.Wait = true, 0 },
		"a resume without a life to wait": func(j *driver.Join) { j.Resume, j.Life.Wait = new(driver.Ref), 0 },
	} {
		j := good
		change(&j)
		if err := j.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*driver.Join){
		"no key":              func(j *driver.Join) { j.Keys = nil },
		"65 keys":             func(j *driver.Join) { j.Keys = manyKeys(65) },
		"an empty key":        func(j *driver.Join) { j.Keys = []string{"", "a"} },
		"unsorted keys":       func(j *driver.Join) { j.Keys = []string{"b", "a"} },
		"a key twice":         func(j *driver.Join) { j.Keys = []string{"a", "a"} },
		"no weight":           func(j *driver.Join) { j.Weight = 0 },
		"more than all":       func(j *driver.Join) { j.Weight = 3 },
		"no life":             func(j *driver.Join) { j.Life.Hold = 0 },
		"no life to wait":     func(j *driver.Join) { j.Life.Wait = 0 },
		"a life below 0":      func(j *driver.Join) { j.Life.Hold = -1 },
		"a wait below 0":      func(j *driver.Join) { j.Life.Wait = -1 },
		"a grace below 0":     func(j *driver.Join) { j.Life.Grace = -1 },
		"a long name":         func(j *driver.Join) { j.Name += "n" },
		"a line below 0":      func(j *driver.Join) { j.MaxLine = -1 },
		"leaving with no key": func(j *driver.Join) { j.Leaving = new(driver.Leaving) },
	} {
		j := good
		change(&j)
		if err := j.Validate(); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func TestARenewalThatCannotBeRightIsInvalid(t *testing.T) {
	t.Parallel()
	ref, life := driver.Ref{Keys: []string{"a"}}, driver.Life{Hold: time.Second}
	for _, r := range []driver.Renewal{
		{Ref: ref, Mode: driver.Extend, Life: life},
		{Ref: ref, Mode: driver.Fix, Life: life},
		{Ref: ref, Mode: driver.Drop},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%v: %v", r.Mode, err)
		}
	}
	bad := []driver.Renewal{
		{Ref: ref, Life: life},
		{Ref: ref, Mode: driver.Drop + 1, Life: life},
		{Ref: ref, Mode: driver.Extend},
		{Ref: ref, Mode: driver.Fix, Life: driver.Life{Hold: -1}},
		{Mode: driver.Extend, Life: life},
		{Mode: driver.Drop},
	}
	for i, r := range bad {
		if err := r.Validate(); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%d, %v: %v, want ErrInvalid", i, r.Mode, err)
		}
	}
}

func TestAQueryOfLessThanNothingIsInvalid(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]error{-1: driver.ErrInvalid, 0: nil, 5: nil} {
		q := driver.Query{Limit: limit}
		if err := q.Validate(); !errors.Is(err, want) {
			t.Errorf("a limit of %d: %v, want %v", limit, err, want)
		}
	}
}

func TestValidationKeepsKeysAsTheyAre(t *testing.T) {
	t.Parallel()
	keys := []string{"A", "a", "a\x00", "a ", "\xff"}
	before := slices.Clone(keys)
	if err := driver.ValidateKeys(keys); err != nil || !slices.Equal(keys, before) {
		t.Errorf("%v, %q", err, keys)
	}
}

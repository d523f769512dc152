package sqllease_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

func TestNamesThatAreNoIdentifiersAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{`a"b`, "a b", "a;b", "a-b", "a.b", "1a", "é", "a\x00", strings.Repeat("a", 41)} {
		for _, o := range []sqllease.Options{{Prefix: name}, {Schema: name}} {
			_, err := sqllease.SchemaSQL(sqllease.Dialect{Name: "test"}, &o)
			if !errors.Is(err, driver.ErrInvalid) {
				t.Errorf("%+v: %v, want ErrInvalid", o, err)
			}
		}
	}
	_, err := sqllease.SchemaSQL(sqllease.Dialect{Name: "test"}, &sqllease.Options{Schema: "1", Prefix: "é"})
	if err == nil || !strings.Contains(err.Error(), "Schema") || !strings.Contains(err.Error(), "Prefix") {
		t.Errorf("%v does not name both", err)
	}
}

func TestANilHandleIsInTheFeatures(t *testing.T) {
	t.Parallel()
	d := sqllease.New(nil, sqllease.Dialect{Name: "test"}, nil)
	if err := d.Features().Err; !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
	if err := d.Check(t.Context()); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Check: %v, want ErrInvalid", err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestAJoinThatCannotBeRightIsInvalid(t *testing.T) {
	t.Parallel()
	good := driver.Join{Claim: driver.Claim{
		Ref: driver.Ref{Keys: []string{"a", "b"}}, Weight: 1, Capacity: 1,
		Life: driver.Life{Hold: time.Second, Wait: time.Second},
	}}
	if err := sqllease.CheckJoin(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*driver.Join){
		"unsorted keys":  func(j *driver.Join) { j.Keys = []string{"b", "a"} },
		"a key twice":    func(j *driver.Join) { j.Keys = []string{"a", "a"} },
		"no key":         func(j *driver.Join) { j.Keys = nil },
		"an empty key":   func(j *driver.Join) { j.Keys = []string{""} },
		"a NUL in front": func(j *driver.Join) { j.Keys = []string{"\x00"} },
		"no weight":      func(j *driver.Join) { j.Weight = 0 },
		"too heavy":      func(j *driver.Join) { j.Weight = 2 },
		"no life":        func(j *driver.Join) { j.Life.Hold = 0 },
		"no wait":        func(j *driver.Join) { j.Life.Wait = 0 },
		"endless":        func(j *driver.Join) { j.Life.Hold = 1<<63 - 1 },
		"negative line":  func(j *driver.Join) { j.MaxLine = -1 },
		"bad leaving":    func(j *driver.Join) { j.Leaving = new(driver.Leaving) },
	} {
		j := good
		change(&j)
		if err := sqllease.CheckJoin(j); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

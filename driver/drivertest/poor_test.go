package drivertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

// poor is the driver of a store that can do the least: tries of one key, without
// weights, tokens, signals or an operator.
type poor struct {
	driver.Driver      // hides what else the driver implements
	silent        bool // it takes what it cannot do
}

func (d poor) Features() driver.Features { return driver.Features{MaxKeys: 1} }

func (d poor) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	switch {
	case d.silent:
	case !j.Try && j.Resume == nil:
		return driver.Standing{}, fmt.Errorf("waiting is %w", driver.ErrUnsupported)
	case j.Capacity > 1:
		return driver.Standing{}, fmt.Errorf("sharing is %w", driver.ErrUnsupported)
	case len(j.Keys) > 1 && len(j.Keys) <= 64 && j.Keys[0] != "" && j.Keys[0] < j.Keys[1]:
		return driver.Standing{}, fmt.Errorf("more than one key is %w", driver.ErrUnsupported)
	}
	return d.Driver.Join(ctx, j)
}

func poorSuite(silent bool) drivertest.Suite {
	return drivertest.Suite{Virtual: true, Open: func() (*drivertest.Store, error) {
		return storeOf(memlease.NewStore(), func(d driver.Driver) driver.Driver { return poor{d, silent} }), nil
	}}
}

func TestAStoreMayLackWhatItsFeaturesSay(t *testing.T) { drivertest.Run(t, poorSuite(false)) }

func TestALackThatIsNotAnsweredIsCaught(t *testing.T) {
	caught := map[string]error{}
	for _, c := range drivertest.Cases() {
		if err := poorSuite(true).Check(t, c); err != nil {
			caught[c.Name] = err
		}
	}
	for name, lack := range map[string]string{
		"claims hold in the order they joined":                 "Features.Line",
		"weights at the end of their range do not wrap around": "Features.Shared",
		"a try of several keys takes all or nothing":           "two keys",
	} {
		if err := caught[name]; err == nil || !strings.Contains(err.Error(), lack) {
			t.Errorf("%q says %v, want a word about %s", name, err, lack)
		}
	}
}

package integration_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/integration/broken"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/history"
	"github.com/hasp-dev/hasp/integration/servers"
)

// persistent is a server that survives being killed.
var persistent = servers.RedisOptions{Persistent: true}

// keep copies a history to where the test's end does not remove it.
func keep(t *testing.T, path string) string {
	t.Helper()
	text := must(os.ReadFile(path))(t)
	kept := must(os.CreateTemp("", "hasp-history-*.jsonl"))(t) //nolint:usetesting // it outlives the test
	defer func() { wantNil(t, kept.Close()) }()
	_ = must(kept.Write(text))(t)
	return filepath.Clean(kept.Name())
}

// TestABrokenDriverIsFoundOut runs clients on drivers that break the contract. A judge
// that lets them pass would let hasp pass, whatever it did.
func TestABrokenDriverIsFoundOut(t *testing.T) {
	want := map[broken.Kind][]string{
		broken.Lives: {"G1", "G2"}, broken.Permits: {"G1", "G2"}, broken.Robs: {"G1", "G2"},
		broken.Revives: {"G2"}, broken.Falls: {"G3"}, broken.Repeats: {"G3"},
	}
	for _, how := range broken.Kinds() {
		t.Run(string(how), func(t *testing.T) {
			s := startRedis(t).with("broken=" + string(how))
			brief := crew.Brief{
				Clients: 2, Hands: 2, Keys: 1, TTL: 300 * time.Millisecond, Think: 5 * time.Millisecond,
				Breathes: how != broken.Lives,
			}
			if how == broken.Revives {
				brief.Hold = 4 * brief.TTL // so that a lease is there long after it was taken
			}
			o := newOrdeal(t, s, brief)
			o.viewer = startedOver(s).client(t)
			if how == broken.Revives {
				o.faults = worldly()[2:] // only what is taken by force is gone while it is trusted
			}
			for range 3 {
				o.start()
			}
			var faults []history.Fault
			var events []history.Event
			o.run(2*time.Minute, func() bool {
				faults, events = o.judge()
				return found(faults, want[how])
			})
			if !found(faults, want[how]) {
				t.Errorf("found %v, want a fault of %v; %s", faults[:min(len(faults), 5)], want[how], history.Summarize(events))
			}
		})
	}
}

// startedOver is the store without a broken driver before it.
func startedOver(s *store) *store { return storeOf(s.redis) }

func found(faults []history.Fault, promises []string) bool {
	for _, f := range faults {
		for _, p := range promises {
			if f.Promise == p {
				return true
			}
		}
	}
	return false
}

// TestAnUnbrokenDriverIsNot is the same run without anything broken.
func TestAnUnbrokenDriverIsNot(t *testing.T) {
	apart(t, func(t *testing.T, s *store) {
		o := newOrdeal(t, s, crew.Brief{
			Clients: 2, Hands: 2, Keys: 1, TTL: s.unhurried(300 * time.Millisecond), Think: 5 * time.Millisecond, Breathes: true,
		})
		o.faults = worldly()
		for range 3 {
			o.start()
		}
		o.run(ordealLasts()/5, never)
		o.finish()
		faults, events := o.judge()
		o.report(faults, events)
		t.Log(history.Summarize(events))
	})
}

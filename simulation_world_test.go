package hasp_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/internal/simulation"
)

// simulated is one run of the simulation: a store, a network, clients, and workers that
// use them.
type simulated struct {
	history *simulation.History
	weather simulation.Weather
	dice    simulation.Dice
	store   *memlease.Store
	network *simulation.Network
	clients []*hasp.Client
	closing []bool         // by a worker, on purpose
	alike   bool           // many workers of few clients want mostly the same
	beside  sync.WaitGroup // what workers do beside their work

	mu      sync.Mutex
	tickets []*detached
}

// detached is a lease on its way.
type detached struct {
	text    []byte
	token   int64
	resumed int
}

// mostOfARun is when a run that has not ended is stuck.
const mostOfARun = 20 * time.Minute

// simulate runs a seed in a bubble of its own and answers what happened.
func simulate(t *testing.T, seed uint64) (h *simulation.History) {
	t.Helper()
	weather := simulation.WeatherOf(seed, *always)
	watchdog := time.AfterFunc(*patience, func() {
		panic(fmt.Sprintf("seed %d: the run does not get on; its virtual time stands still", seed))
	})
	defer watchdog.Stop()
	defer func() {
		if r := recover(); r != nil {
			if h == nil {
				panic(r)
			}
			h.Wrongf(0, "G12: the run does not end: %v\n%s", r, debug.Stack())
		}
	}()
	synctest.Test(t, func(*testing.T) {
		h = simulation.NewHistory(seed, weather.Name)
		newSimulated(h, weather).run()
	})
	return h
}

func newSimulated(h *simulation.History, weather simulation.Weather) *simulated {
	w := &simulated{history: h, weather: weather, dice: simulation.Dice(h.Seed), store: memlease.NewStore()}
	w.network = simulation.NewNetwork(h, weather, w.store.Wipe)
	throws := w.dice.For('c')
	w.alike = throws.Chance(50)
	clients := 2 + throws.IntN(3)
	if w.alike {
		clients = 2
	}
	for i := range clients {
		drv := w.network.Driver(i, w.store.Driver())
		client, err := hasp.New(drv, &hasp.Options{Name: fmt.Sprintf("client-%c", 'a'+i)})
		if err != nil {
			h.Wrongf(i, "users: New: %v", err)
			continue
		}
		var nth uint32
		var mu sync.Mutex
		hasp.Simulate(client, [6]byte(simulation.Inbox(i)), func() driver.ID {
			mu.Lock()
			defer mu.Unlock()
			nth++
			return simulation.Claim{Client: uint8(i), Nth: nth}.ID()
		})
		w.clients = append(w.clients, client)
	}
	w.closing = make([]bool, len(w.clients))
	return w
}

// run lets the workers do their work and sees that everything ends.
func (w *simulated) run() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var workers sync.WaitGroup
	throws := w.dice.For('n')
	busy := make([]string, 3+throws.IntN(4))
	if w.alike {
		busy = make([]string, 6+throws.IntN(4))
	}
	for i := range busy {
		a := &worker{simulated: w, client: i % len(w.clients), throws: w.dice.For('a', uint64(i)), busy: &busy[i]}
		workers.Go(func() { a.work(ctx) })
	}
	done := make(chan struct{})
	go func() {
		workers.Wait()
		w.beside.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(mostOfARun):
		w.history.Wrongf(0, "live: workers are stuck: %s", strings.Join(busy, ", "))
		stop()
		<-done
	}
	for !w.network.Idle() {
		time.Sleep(time.Second)
	}
	if throws.Chance(50) {
		w.forgetting()
	}
	w.close()
	w.list()
}

// forgetting is G12 for the clients: what they know of claims that are over they forget.
func (w *simulated) forgetting() {
	var left []simulation.Claim
	for range 60 {
		left = left[:0]
		for i, client := range w.clients {
			if w.closing[i] {
				continue
			}
			for _, id := range hasp.ClaimIDs(client) {
				left = append(left, simulation.ClaimOf(id))
			}
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(time.Second)
	}
	w.history.Wrongf(0, "G12: %v are over and never forgotten", left)
}

// close closes the clients. Nothing goes wrong any more, and nobody holds anything.
func (w *simulated) close() {
	for i, client := range w.clients {
		began := w.history.Now()
		err := client.Close(context.Background())
		took := w.history.Now() - began
		if !w.closing[i] && (err != nil || took > 6*time.Second) {
			w.history.Wrongf(i, "G11: Close with nothing held took %s: %v", took, err)
		}
	}
}

// list writes down what is left in the store.
func (w *simulated) list() {
	page, err := w.store.Driver().Lines(context.Background(), driver.Query{})
	if err != nil {
		w.history.Wrongf(0, "users: Lines: %v", err)
	}
	for _, line := range page.Lines {
		for _, entry := range append(line.Holders, line.Waiters...) {
			w.history.Add(simulation.Event{Kind: simulation.Listed, Key: line.Key, Number: entry.Number})
		}
	}
}

// fair says that calls come through: always when it is calm, and where no signal is heard
// once the clients have waited for one.
func (w *simulated) fair() bool {
	return w.weather.Name == "calm" || w.weather.Name == "deaf" && w.history.Now() > 10*time.Second
}

package crew

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/process"
	"github.com/hasp-dev/hasp/integration/stores"
)

// variable says to a test binary what it is to be.
const variable = "HASP_INTEGRATION_CREW"

// Brief is what a process is told when it starts.
type Brief struct {
	Name    string
	Store   string // an address of package stores
	History string // the file of the history; "" for a puppet

	// Of a worker.
	Seed     uint64
	Clients  int // of hasp, each with a driver of its own
	Hands    int // goroutines to a client
	Keys     int // of each kind of lock
	TTL      time.Duration
	Think    time.Duration // the most between two locks
	Hold     time.Duration // the most that most leases are held; 0: a twentieth of the TTL
	Breathes bool          // renews; else every lease is a fixed one

	// Of a counter, which has Hands and a TTL.
	Grants        int    // that it takes of one key; 0: it is no counter
	Ledger        string // the URL that is told of each, with its token
	LocalHandoffs int
	Sticky        time.Duration

	// Of a candidate, which has a TTL, and a Hold after which it resigns, 0: never.
	Elects   string        // the election; "": it is no candidate
	Grace    time.Duration // of its terms
	Drain    time.Duration // how long it takes to stop
	Patience time.Duration // elect.Options.Drain

	// Of a node, which has a TTL, and a Hold that each run takes.
	Ticks time.Duration // between two runs; 0: it is no node
	Skew  time.Duration // of its clock
}

// Main turns the process into a worker or a puppet and never returns, if that is what
// it was started for.
func Main() {
	text, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	var b Brief
	err := json.Unmarshal([]byte(text), &b)
	if err == nil {
		err = b.run(context.Background())
	}
	if err != nil {
		fmt.Println("crew:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (b Brief) run(ctx context.Context) error {
	if b.Grants != 0 {
		return count(ctx, b)
	}
	if b.History == "" {
		return actAsPuppet(ctx, b)
	}
	if b.Elects != "" {
		return stand(ctx, b)
	}
	if b.Ticks != 0 {
		return turn(ctx, b)
	}
	return work(ctx, b)
}

// Start starts a process. env has further variables for it.
func Start(b Brief, hear func(line string), env ...string) (*process.Process, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(append(os.Environ(), variable+"="+string(text)), env...)
	return process.Start(cmd, hear)
}

// open makes a client on the store.
func (b Brief) open(name string) (*hasp.Client, *stores.Opened, error) {
	o, err := stores.Open(b.Store)
	if err != nil {
		return nil, nil, err
	}
	client, err := hasp.New(o.Driver, &hasp.Options{Name: name})
	return client, o, err
}

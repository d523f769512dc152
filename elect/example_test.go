package elect_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/elect"
)

// newClient makes a client of a store of its own. Processes that stand against each
// other share a store, and each has a name.
func newClient(name string) *hasp.Client {
	client, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{Name: name})
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func ExampleRun() {
	ctx := context.Background()
	client := newClient("worker-1")
	defer client.Close(ctx)

	err := elect.Run(ctx, client, "billing", func(ctx context.Context) error {
		lease, _ := hasp.FromContext(ctx, "billing")
		fmt.Println("leading, with a token:", lease.Token() > 0)
		return nil // or work until ctx ends, which it does when this process no longer leads
	}, nil)
	fmt.Println("resigned:", err)
	// Output:
	// leading, with a token: true
	// resigned: <nil>
}

func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client := newClient("worker-1")
	defer client.Close(context.Background())

	led := make(chan struct{})
	elector, err := elect.New(client, "billing", func(ctx context.Context) error {
		close(led)
		return elect.Stay(ctx) // nothing to run: others ask IsLeader
	}, nil)
	if err != nil {
		log.Print(err)
		return
	}
	done := make(chan error, 1)
	go func() { done <- elector.Run(ctx) }()

	<-led
	leader, err := elector.Leader(ctx)
	fmt.Println(elector.IsLeader(), leader.Name, err)

	stop()
	fmt.Println(<-done, elector.IsLeader())
	// Output:
	// true worker-1 <nil>
	// context canceled false
}

func ExampleObserve() {
	ctx := context.Background()
	client := newClient("worker-1")
	defer client.Close(ctx)

	elector, err := elect.New(client, "billing", elect.Stay, &elect.Options{Once: true})
	if err != nil {
		log.Print(err)
		return
	}
	done := make(chan error, 1)
	go func() { done <- elector.Run(ctx) }()

	led := false
	for leader, err := range elect.Observe(ctx, client, "billing") {
		switch {
		case err != nil:
			fmt.Println("not known at present:", err)
		case !leader.Nobody():
			led = true
			fmt.Println(leader.Name, "leads")
			_ = elector.Resign(ctx)
		case led:
			fmt.Println("nobody leads, resigned:", errors.Is(<-done, elect.ErrResigned))
			return
		}
	}
	// Output:
	// worker-1 leads
	// nobody leads, resigned: true
}

func ExampleContender() {
	ctx := context.Background()
	client := newClient("worker-1")
	defer client.Close(ctx)

	acquired := make(chan struct{})
	contender := &elect.Contender{
		Client: client,
		Name:   "billing",
		OnAcquired: func(context.Context) {
			fmt.Println("acquired")
			close(acquired)
		},
		OnReleased: func(context.Context) { fmt.Println("released") },
	}
	if err := contender.Start(ctx); err != nil {
		log.Print(err)
		return
	}
	<-acquired
	err := contender.Stop(ctx)
	fmt.Println(contender.State(), err)
	// Output:
	// acquired
	// released
	// initial <nil>
}

func ExampleElector_Health() {
	client := newClient("worker-1")
	elector, err := elect.New(client, "billing", elect.Stay, nil)
	if err != nil {
		log.Print(err)
		return
	}
	http.Handle("/healthz", elector.Health())    // 200 while it runs: who leads, since when
	http.Handle("/leader", elector.LeaderOnly()) // 200 on the leader alone
	fmt.Println(elector.Status().State)
	// Output: stopped
}

package examples_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/schedule"
)

// A deployment of three pods has a nightly report. Every pod has the job; each tick runs
// in one of them, and a rolling update neither skips nor repeats one. When Kubernetes
// sends TERM the context of Run ends: signal.NotifyContext makes such a context.
func Example_cronInKubernetes() {
	store := memlease.NewStore()
	terminated, terminate := context.WithCancel(context.Background())
	defer terminate()

	var mu sync.Mutex
	runs := map[time.Time]int{} // by tick
	var pods sync.WaitGroup
	for i := range 3 {
		client, stop := process(store, fmt.Sprint("pod-", i))
		s, err := schedule.New(client, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		err = s.Add(schedule.Job{
			Name: "report", Cron: "@every 200ms", // in production "0 3 * * *", with a Zone
			Run: func(ctx context.Context) error {
				tick, _ := schedule.At(ctx)
				mu.Lock()
				defer mu.Unlock()
				if runs[tick]++; len(runs) == 3 {
					terminate()
				}
				return nil
			},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		pods.Go(func() {
			defer stop()
			if err := s.Run(terminated); err != nil {
				fmt.Println(err)
			}
		})
	}
	pods.Wait()
	for _, n := range runs {
		if n != 1 {
			fmt.Println("a tick ran", n, "times")
		}
	}
	fmt.Println("at least three ticks, each in one pod:", len(runs) >= 3)
	// Output:
	// at least three ticks, each in one pod: true
}

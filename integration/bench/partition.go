package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/integration/proxy"
)

// measurePartition: the network between holders and the server swallows everything. Each
// holder has to be told before the next one holds.
func measurePartition(ctx context.Context, p plan) ([]row, error) {
	told := 0
	err := p.withRedis(func(s *redisServer) error {
		way, err := proxy.New(s.Addr)
		if err != nil {
			return err
		}
		defer way.Close()
		told, err = p.silence(ctx, s.Addr, way)
		return err
	})
	what := fmt.Sprintf("holders on a silent network who are told before the next one holds, of %d", p.partitions)
	return []row{atLeast(float64(p.partitions), "all").judged("partition", what, float64(told), strconv.Itoa(told), "")}, err
}

// silence answers how many were told in time.
func (p plan) silence(ctx context.Context, addr string, way *proxy.Proxy) (int, error) {
	opts := &hasp.Options{Lock: hasp.LockOptions{TTL: time.Second}}
	near, far := connect(addr), connect(way.Addr())
	defer near.Close()
	defer far.Close()
	nexts, err := hasp.New(redislease.New(near, nil), opts)
	if err != nil {
		return 0, err
	}
	defer nexts.Close(ctx)
	holders, err := hasp.New(redislease.New(far, nil), opts)
	if err != nil {
		return 0, err
	}
	defer func() { // its leases are lost, so nothing is waited for
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		_ = holders.Close(short)
	}()
	leases := make([]*hasp.Lease, p.partitions)
	for i := range leases {
		if leases[i], err = holders.Mutex(strconv.Itoa(i)).Lock(ctx); err != nil {
			return 0, err
		}
	}
	end := way.Hold(proxy.Both)
	defer end()
	var told atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, len(leases))
	for i, lease := range leases {
		wg.Go(func() {
			next, err := nexts.Mutex(strconv.Itoa(i)).Lock(ctx)
			if err != nil {
				errs <- err
				return
			}
			if lease.Err() != nil {
				told.Add(1)
			}
			errs <- next.Release(ctx)
		})
	}
	wg.Wait()
	for range leases {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	return int(told.Load()), nil
}

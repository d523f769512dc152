package crew

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/fence"
)

// CountedKey is the key that all counters want.
const CountedKey = "counted"

// count takes its grants of one key with many goroutines, once standard input ends.
func count(ctx context.Context, b Brief) error {
	client, handle, err := b.open(b.Name)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Close() }()
	own := client.With(hasp.LockOptions{TTL: b.TTL, LocalHandoffs: b.LocalHandoffs, Sticky: b.Sticky})
	fmt.Println("at work")
	_, _ = io.Copy(io.Discard, os.Stdin)
	var taken atomic.Int64
	var hands sync.WaitGroup
	errs := make([]error, b.Hands)
	for i := range b.Hands {
		hands.Go(func() {
			for errs[i] == nil && taken.Add(1) <= int64(b.Grants) {
				errs[i] = b.take(ctx, own.Mutex(CountedKey))
			}
		})
	}
	hands.Wait()
	closing, stop := context.WithTimeout(ctx, closingLimit)
	defer stop()
	return errors.Join(append(errs, client.Close(closing))...)
}

// take has one grant written down while it lasts.
func (b Brief) take(ctx context.Context, m *hasp.Mutex) error {
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(lease.Context(ctx), http.MethodPost, b.Ledger, http.NoBody)
	if err == nil {
		err = fence.SetHeader(r.Header, lease)
	}
	if err == nil {
		err = post(r)
	}
	return errors.Join(err, lease.Release(ctx))
}

func post(r *http.Request) error {
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the ledger answers %s: %s", answer.Status, text)
	}
	return err
}

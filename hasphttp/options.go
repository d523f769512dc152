package hasphttp

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp"
)

// Options say how a request takes its lock. Nil and the zero value mean the defaults.
// They may serve several middlewares, and are not changed once the first has them.
type Options struct {
	// TTL is how long the store keeps the lock without a renewal, 100 ms to 30 days; it
	// is renewed while the handler runs. Defaults to the client's, which is 10 s unless
	// changed.
	TTL time.Duration
	// Wait is how long a request stands in line, or [hasp.Forever]. Defaults to 0: it is
	// answered at once.
	Wait time.Duration
	// Retry is the pause between attempts of a request that waits at a store without a line,
	// from 1 ms to 1 h; of no effect at other stores. Defaults to 50 ms.
	Retry time.Duration
	// MaxLine is how many may wait for one key: in this client, and in the store's line, in
	// which the requests of another server count as one; who comes then is answered at once.
	// Defaults to no limit.
	MaxLine int
	// MaxWaiting is how many requests may wait under these Options in this process, for
	// any key; who comes then is answered at once. Defaults to no limit.
	MaxWaiting int
	// Shared takes the lock to read: several such requests run at once, but not beside
	// one that takes it exclusively. It needs exactly one key.
	Shared bool
	// Stop, when closed, ends the waiting: who waits or would wait is answered 503, who
	// has the lock goes on. Close it in what http.Server.RegisterOnShutdown calls.
	// Defaults to never.
	Stop <-chan struct{}
	// OnError answers a request that did not get the lock, or lost it before it had
	// answered. Status says what kind of error it is. Defaults to Error.
	OnError func(w http.ResponseWriter, r *http.Request, err error)
	// Logger is told of errors that are the server's fault: all but held, a bad key, and
	// clients that went away. Defaults to discarding.
	Logger *slog.Logger

	waiting atomic.Int64
}

// ErrStopping says that a request was not let wait since the server shuts down.
var ErrStopping = errors.New("the server is shutting down")

// errGone says that the client has gone away while its request waited.
var errGone = errors.New("the client has gone away")

// check says what is wrong with the options.
func (o *Options) check() error {
	var errs []error
	if o.TTL != 0 && (o.TTL < minTTL || o.TTL > maxTTL) {
		errs = append(errs, fmt.Errorf("option TTL is %s; it must be from %s to %s, or 0 for the client's", o.TTL, minTTL, maxTTL))
	}
	if o.Wait < 0 && o.Wait != hasp.NoWait {
		errs = append(errs, fmt.Errorf("option Wait is %s; it must not be negative", o.Wait))
	}
	if o.Retry != 0 && (o.Retry < minRetry || o.Retry > maxRetry) {
		errs = append(errs, fmt.Errorf("option Retry is %s; it must be from %s to %s, or 0 for %s", o.Retry, minRetry, maxRetry, defaultRetry))
	}
	if o.MaxLine < 0 || o.MaxWaiting < 0 {
		errs = append(errs, errors.New("options MaxLine and MaxWaiting must not be negative"))
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", hasp.ErrInvalid, errors.Join(errs...))
	}
	return nil
}

// Bounds of a TTL and of a pause, which are those of package hasp.
const (
	minTTL       = 100 * time.Millisecond
	maxTTL       = 30 * 24 * time.Hour
	minRetry     = time.Millisecond
	maxRetry     = time.Hour
	defaultRetry = 50 * time.Millisecond
)

// lock is what the options say of each lock.
func (o *Options) lock() hasp.LockOptions {
	retry := cmp.Or(o.Retry, defaultRetry)
	return hasp.LockOptions{
		TTL: o.TTL, Wait: cmp.Or(o.Wait, hasp.NoWait), MaxLine: o.MaxLine,
		Backoff: hasp.Backoff{Min: retry, Max: retry},
	}
}

// enter counts a request that is going to wait; false: too many do.
func (o *Options) enter() bool {
	if n := o.waiting.Add(1); o.MaxWaiting == 0 || n <= int64(o.MaxWaiting) {
		return true
	}
	o.waiting.Add(-1)
	return false
}

func (o *Options) leave() { o.waiting.Add(-1) }

package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
)

// locker is one client of one library.
type locker interface {
	// lock waits for a lock and answers what releases it. After the context's end it may
	// answer any error.
	lock(ctx context.Context, key string) (unlock func() error, err error)
	close() error
}

// library is one of those that are compared.
type library struct {
	name  string
	open  func(addr string) (locker, error)
	sends []string // the commands of a lock and a release, as clients send them
	// crowd opens a client whose goroutines are the contenders of one process. nil: each has a
	// client of its own.
	crowd func(addr string) (locker, error)
}

const ttl = 10 * time.Second

// Names of the libraries.
const (
	nameHasp        = "hasp"
	nameOneHasp     = "hasp, one client to a process"
	nameRaw         = "raw"
	namePipelined   = "raw, AutoPipeline"
	nameBsm         = "bsm/redislock"
	nameWideBsm     = "bsm/redislock, pool of 100"
	nameRedsync     = "redsync"
	nameRueidislock = "rueidislock"
)

// libraries are all of them, each with the configuration its documentation recommends
// for one server.
func libraries() []library {
	return []library{
		{name: nameHasp, open: openHasp, sends: []string{"evalsha", "eval"}},
		{name: nameRaw, open: openRaw, sends: []string{"set", "evalsha"}},
		{name: namePipelined, open: openPipelined, sends: []string{"set", "evalsha"}},
		{name: nameBsm, open: openBsm, sends: []string{"evalsha"}},
		{name: nameWideBsm, open: openWideBsm, sends: []string{"evalsha"}},
		{name: nameRedsync, open: openRedsync, sends: []string{"set", "evalsha"}},
		{name: nameRueidislock, open: openRueidislock, sends: []string{"evalsha"}},
	}
}

// crowds are contenders that meet in their processes.
func crowds() []library {
	return []library{{name: nameOneHasp, crowd: func(addr string) (locker, error) {
		rdb := connect(addr)
		return newOurs(redislease.New(rdb, nil), nil, rdb.Close)
	}}}
}

func named(name string) (library, error) {
	for _, l := range slices.Concat(libraries(), databases(), crowds()) {
		if l.name == name {
			return l, nil
		}
	}
	return library{}, fmt.Errorf("there is no library %q", name)
}

func connect(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

// ours is hasp.
type ours struct {
	client *hasp.Client
	below  func() error // closes what the driver is on
	*noted              // of Redis; else nil
}

func newOurs(d driver.Driver, opts *hasp.Options, below func() error) (locker, error) {
	client, err := hasp.New(d, opts)
	if err != nil {
		return nil, errors.Join(err, below())
	}
	return &ours{client: client, below: below}, nil
}

func openHasp(addr string) (locker, error) {
	rdb := connect(addr)
	d := &noted{Driver: redislease.New(rdb, nil)}
	l, err := newOurs(d, nil, rdb.Close)
	if o, ok := l.(*ours); ok {
		o.noted = d
	}
	return l, err
}

// noted is a driver that notes when it renewed something.
type noted struct {
	*redislease.Driver
	mu    sync.Mutex
	times []time.Duration
}

func (n *noted) Renew(ctx context.Context, items []driver.Renewal, answer func(i int, s driver.Standing, err error)) {
	n.mu.Lock()
	n.times = append(n.times, clock())
	n.mu.Unlock()
	n.Driver.Renew(ctx, items, answer)
}

// renewals answers when that was.
func (n *noted) renewals() []time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.times)
}

func (o *ours) lock(ctx context.Context, key string) (func() error, error) {
	lease, err := o.client.Mutex(key).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return lease.Release(ctx) }, nil
}

func (o *ours) close() error {
	ctx, stop := context.WithTimeout(context.Background(), ttl)
	defer stop()
	return errors.Join(o.client.Close(ctx), o.below())
}

// raw is a lock by hand: SET NX PX, and a script that compares and deletes.
type raw struct {
	rdb    *redis.Client
	sender redis.Cmdable
	unlock *redis.Script
}

const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

func openRaw(addr string) (locker, error) {
	rdb := connect(addr)
	return &raw{rdb, rdb, redis.NewScript(compareAndDelete)}, nil
}

// openPipelined is the same by hand through go-redis' pipelining of concurrent callers.
func openPipelined(addr string) (locker, error) {
	rdb := connect(addr)
	pipeline, err := rdb.AutoPipeline()
	if err != nil {
		return nil, err
	}
	return &raw{rdb, pipeline, redis.NewScript(compareAndDelete)}, nil
}

func (r *raw) lock(ctx context.Context, key string) (func() error, error) {
	value := random()
	ok, err := r.sender.SetNX(ctx, key, value, ttl).Result()
	if err == nil && !ok {
		err = fmt.Errorf("%q is held", key)
	}
	return func() error { return r.unlock.Run(ctx, r.sender, []string{key}, value).Err() }, err
}

func (r *raw) close() error { return r.rdb.Close() }

// random is what locks by hand use as proof of ownership.
func random() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// bsm retries every 10 ms, more often than any of its examples.
type bsm struct {
	rdb    *redis.Client
	client *redislock.Client
}

func openBsm(addr string) (locker, error) {
	rdb := connect(addr)
	return &bsm{rdb, redislock.New(rdb)}, nil
}

// openWideBsm is for many goroutines: the pool has 10 connections for each core else.
func openWideBsm(addr string) (locker, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 100})
	return &bsm{rdb, redislock.New(rdb)}, nil
}

func (b *bsm) lock(ctx context.Context, key string) (func() error, error) {
	lock, err := b.client.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond)})
	if err != nil {
		return nil, err
	}
	return func() error { return lock.Release(ctx) }, nil
}

func (b *bsm) close() error { return b.rdb.Close() }

// redsyncLock is redsync over one pool; it retries as often as is needed, with its own delays.
type redsyncLock struct {
	rdb *redis.Client
	rs  *redsync.Redsync
}

func openRedsync(addr string) (locker, error) {
	rdb := connect(addr)
	return &redsyncLock{rdb, redsync.New(goredis.NewPool(rdb))}, nil
}

func (s *redsyncLock) lock(ctx context.Context, key string) (func() error, error) {
	mutex := s.rs.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		_, err := mutex.UnlockContext(ctx)
		return err
	}, nil
}

func (s *redsyncLock) close() error { return s.rdb.Close() }

// rueidisLock is as its README has it for one server of Redis 7. TryNextAfter is longer
// than by default, since there is no other key to try next: with NoLoopTracking, an attempt
// that takes longer on a busy machine leaves its caller waiting for ever.
type rueidisLock struct{ locker rueidislock.Locker }

func openRueidislock(addr string) (locker, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: ttl, TryNextAfter: ttl / 2,
	})
	return &rueidisLock{l}, err
}

func (r *rueidisLock) lock(ctx context.Context, key string) (func() error, error) {
	_, cancel, err := r.locker.WithContext(ctx, key)
	return func() error {
		cancel()
		return nil
	}, err
}

func (r *rueidisLock) close() error {
	r.locker.Close()
	return nil
}

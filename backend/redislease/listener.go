package redislease

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

const (
	quiet      = 3 * time.Second // nothing heard for so long: ask whether the connection lives
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	denied     = 5 * time.Second // between attempts where a right is missing
	unheard    = time.Second     // for a message to oneself
)

// ear is what the driver listens with.
type ear struct {
	mu        sync.Mutex
	listening map[*listener]struct{}
	watches   map[string]int // keys, and how often each is watched
}

// listener is one Listen: a push connection, and who hears what it brings.
type listener struct {
	d       *Driver
	channel string
	kick    chan struct{} // the watched keys have changed

	mu      sync.Mutex // guards the rest
	deliver func(driver.Signal)
	over    bool // deliver must not be called any more
	ps      *redis.PubSub
	nonce   string
	heard   chan struct{} // closed when nonce was heard
}

// Listen implements driver.Signaler. A subscription counts as heard when a message this
// client sends to itself arrives by it; then comes Missed.
func (d *Driver) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	if d.err != nil {
		return d.err
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)() //nolint:contextcheck // the driver's end ends it too
	l := &listener{d: d, channel: inboxChannel(inbox), kick: make(chan struct{}, 1), deliver: deliver}
	if !d.background(func() { l.run(within) }) || !d.background(func() { l.tend(within) }) {
		return unavailable(errClosed)
	}
	d.ear.add(l)
	defer d.ear.remove(l)
	<-within.Done()
	l.stop()
	if err := ctx.Err(); err != nil {
		return err
	}
	return unavailable(errClosed)
}

// run keeps a subscription until ctx ends.
func (l *listener) run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		wait := l.subscribe(ctx)
		if time.Since(began) > quiet {
			pause = firstPause
		}
		rest(ctx, max(wait, pause))
		pause = min(2*pause, lastPause)
	}
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// subscribe hears one subscription until it breaks, and says how long to wait before
// the next.
func (l *listener) subscribe(ctx context.Context) time.Duration {
	ps := l.d.rdb.Subscribe(ctx, l.channels()...)
	defer ps.Close()
	l.mu.Lock()
	l.ps = ps
	over := l.over
	l.mu.Unlock()
	if over {
		return 0
	}
	l.rouse()
	for asked := false; ; {
		msg, err := ps.ReceiveTimeout(ctx, quiet)
		var silent net.Error
		switch {
		case ctx.Err() != nil:
			return 0
		case err == nil:
			asked = false
			l.hear(ctx, msg)
		case errors.As(err, &silent) && silent.Timeout() && !asked:
			asked = true
			if ps.Ping(ctx) != nil {
				return 0
			}
		case code(err) != "":
			l.d.warn("signals", deaf(classify(err)))
			return denied
		default:
			return 0
		}
	}
}

// channels are the inbox and those of the watched keys.
func (l *listener) channels() []string {
	channels := []string{l.channel}
	for _, key := range l.d.ear.keys() {
		channels = append(channels, watchSpace+l.d.naming.line(key))
	}
	return channels
}

// stop ends the delivery, then the subscription. Closing may wait for a dialling, which
// ends with the context too, but in its own time.
func (l *listener) stop() {
	l.mu.Lock()
	l.over = true
	ps := l.ps
	l.mu.Unlock()
	if ps != nil {
		go ps.Close()
	}
}

// tell delivers, unless Listen has returned.
func (l *listener) tell(s driver.Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.deliver(s)
	}
}

func (l *listener) hear(ctx context.Context, msg any) {
	switch m := msg.(type) {
	case *redis.Subscription:
		if m.Kind == "subscribe" && m.Channel == l.channel {
			l.d.background(func() { l.prove(ctx) })
		}
	case *redis.Message:
		if line, watched := strings.CutPrefix(m.Channel, watchSpace); watched {
			l.changed(line, m.Payload)
			return
		}
		l.addressed(m.Payload)
	}
}

// prove sends a message to itself until it is heard.
func (l *listener) prove(ctx context.Context) {
	nonce := rand.Text()
	heard := make(chan struct{})
	l.mu.Lock()
	l.nonce, l.heard = nonce, heard
	l.mu.Unlock()
	for ctx.Err() == nil {
		wait := unheard
		if err := l.d.publish(ctx, l.channel, "N"+nonce); err != nil && ctx.Err() == nil {
			l.d.warn("signals", deaf(err))
			wait = denied
		}
		t := time.NewTimer(wait)
		select {
		case <-heard:
		case <-ctx.Done():
		case <-t.C:
			if l.current(nonce) {
				continue
			}
		}
		t.Stop()
		return
	}
}

// current reports whether no later subscription has begun.
func (l *listener) current(nonce string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nonce == nonce
}

// publish sends a message; on a silent socket it ends with ctx.
func (d *Driver) publish(ctx context.Context, channel, payload string) error {
	got := make(chan error, 1)
	go func() { got <- classify(d.rdb.Publish(ctx, channel, payload).Err()) }()
	select {
	case err := <-got:
		return err
	case <-ctx.Done():
		return ended(ctx)
	}
}

// addressed reads what comes to the inbox: a letter, a number of 13 hex digits, an ID of
// 16 bytes, the name of the line.
func (l *listener) addressed(payload string) {
	const head = 1 + 13 + 16
	if nonce, ok := strings.CutPrefix(payload, "N"); ok {
		l.mu.Lock()
		mine := nonce == l.nonce && l.heard != nil
		if mine {
			close(l.heard)
			l.heard = nil
		}
		l.mu.Unlock()
		if mine {
			l.tell(driver.Signal{Kind: driver.Missed})
		}
		return
	}
	if len(payload) < head {
		return
	}
	kinds := map[byte]driver.SignalKind{'G': driver.Granted, 'T': driver.Turn, 'E': driver.Ended, 'R': driver.Ended}
	key, ok := l.d.naming.key(payload[head:])
	kind, known := kinds[payload[0]]
	if !ok || !known {
		return
	}
	l.tell(driver.Signal{
		Kind: kind, Key: key, Number: hexNumber(payload[1:14]), ID: driver.ID([]byte(payload[14:head])),
		Revoked: payload[0] == 'R',
	})
}

// changed reads what comes of a watched line.
func (l *listener) changed(line, payload string) {
	key, ok := l.d.naming.key(line)
	if !ok || !l.d.ear.watching(key) {
		return
	}
	switch payload {
	case "W":
		l.tell(driver.Signal{Kind: driver.Wanted, Key: key})
	case "C":
		l.tell(driver.Signal{Kind: driver.Changed, Key: key})
	}
}

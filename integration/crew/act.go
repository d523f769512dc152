package crew

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/history"
	"github.com/hasp-dev/hasp/integration/stores"
)

// answerMark begins the lines of a puppet that are answers.
const answerMark = "@"

// actor is the puppet's side.
type actor struct {
	client *hasp.Client

	mu     sync.Mutex
	leases map[string]*hasp.Lease
}

// actAsPuppet does what standard input says, each order on a goroutine of its own,
// until that ends.
func actAsPuppet(ctx context.Context, b Brief) error {
	client, handle, err := b.open(b.Name)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Close() }()
	a := &actor{client: client, leases: make(map[string]*hasp.Lease)}
	fmt.Println("on stage")
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		var o Order
		if err := json.Unmarshal(orders.Bytes(), &o); err != nil {
			return err
		}
		go func() { a.say(a.do(ctx, o)) }()
	}
	return orders.Err()
}

func (a *actor) say(answer Answer) {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err) // it has only numbers and strings
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Println(answerMark + string(text))
}

func (a *actor) do(ctx context.Context, o Order) Answer {
	answer := Answer{N: o.N}
	var err error
	switch o.Do {
	case "lock":
		err = a.lock(ctx, o, &answer)
	case "look":
		err = a.lease(o).Err()
		answer.Token, answer.Until = a.lease(o).Token(), history.Instant(a.lease(o).TrustedUntil())
	case "release":
		err = a.lease(o).Release(ctx)
	case "extend":
		err = a.lease(o).Extend(ctx, o.For)
	case "spin":
		for end := time.Now().Add(o.For); time.Now().Before(end); {
			_ = end // keeps the only processor
		}
	case "write":
		answer.Rows, err = write(ctx, o, a.lease(o).Token())
	case "close":
		err = a.client.Close(ctx)
	default:
		err = fmt.Errorf("a puppet cannot %q", o.Do)
	}
	answer.At, answer.Class = history.Now(), Class(err)
	if err != nil {
		answer.Text = err.Error()
	}
	return answer
}

func (a *actor) lease(o Order) *hasp.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leases[o.Lease]
}

func (a *actor) lock(ctx context.Context, o Order, answer *Answer) error {
	if o.For > 0 {
		limited, stop := context.WithTimeout(ctx, o.For)
		defer stop()
		ctx = limited
	}
	options := hasp.LockOptions{TTL: o.TTL, Wait: o.Wait, NoRenew: o.NoRenew}
	if o.Try {
		options.Wait = hasp.NoWait
	}
	lease, err := o.acquire(ctx, a.client.With(options))
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.leases[o.Lease] = lease
	a.mu.Unlock()
	answer.Token, answer.Until = lease.Token(), history.Instant(lease.TrustedUntil())
	go func() {
		<-lease.Done()
		at, err := history.Now(), lease.Err()
		a.say(Answer{Over: true, Lease: o.Lease, Class: Class(err), Text: fmt.Sprint(err), At: at})
	}()
	return nil
}

func (o Order) acquire(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) {
	switch o.Kind {
	case "read":
		return c.RWMutex(o.Keys[0]).RLock(ctx)
	case "write":
		return c.RWMutex(o.Keys[0]).Lock(ctx)
	case "permits":
		return c.Semaphore(o.Keys[0], o.Of).Acquire(ctx, o.Permits)
	}
	return c.Mutex(o.Keys[0], o.Keys[1:]...).Lock(ctx)
}

// write is what a token is for: a row that takes no write with a smaller one than it
// has seen.
func write(ctx context.Context, o Order, token int64) (int64, error) {
	db, err := sql.Open("sqlite", stores.SQLiteDSN(o.File)+"&_pragma=busy_timeout(5000)")
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	done, err := db.ExecContext(ctx, `update guarded set body = body || ?, fence = ? where fence <= ?`, o.Text, token, token)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

package examples_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// reservations are locks that live across requests: the client of the service carries
// the ticket, in the place of a session.
type reservations struct{ client *hasp.Client }

// What a ticket can be refused for.
var (
	errNoTicket  = errors.New("the request has no ticket")
	errBadTicket = errors.New("this is no ticket")
	errExpired   = errors.New("the reservation has expired")
	errUsed      = errors.New("the ticket has been used; another request has its successor")
)

// acquire is the first request.
func (r reservations) acquire(ctx context.Context, key string, d time.Duration) (string, error) {
	lease, err := r.client.Mutex(key).TryLock(ctx)
	if err != nil {
		return "", err
	}
	return detach(ctx, lease, d)
}

// refresh is any request in between: it exchanges the ticket for one that lives d more.
func (r reservations) refresh(ctx context.Context, text string, d time.Duration) (string, error) {
	lease, err := r.resume(ctx, text)
	if err != nil {
		return "", err
	}
	return detach(ctx, lease, d)
}

// release is the last one.
func (r reservations) release(ctx context.Context, text string) error {
	lease, err := r.resume(ctx, text)
	if err != nil {
		return err
	}
	return lease.Release(ctx)
}

func detach(ctx context.Context, lease *hasp.Lease, d time.Duration) (string, error) {
	ticket, err := lease.Detach(ctx, d)
	if err != nil {
		return "", err
	}
	text, err := ticket.MarshalText()
	return string(text), err
}

// resume takes the lease up again, or tells why it cannot be.
func (r reservations) resume(ctx context.Context, text string) (*hasp.Lease, error) {
	if text == "" {
		return nil, errNoTicket
	}
	var ticket hasp.Ticket
	if err := ticket.UnmarshalText([]byte(text)); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadTicket, err)
	}
	lease, err := r.client.Resume(ctx, ticket)
	var refused *hasp.Error
	if !errors.Is(err, hasp.ErrNotHeld) || !errors.As(err, &refused) {
		return lease, err
	}
	line, err := r.client.Inspect(ctx, refused.Key)
	switch {
	case err != nil:
		return nil, err
	case len(line.Holders) > 0: // by the successor, or by somebody who came later
		return nil, errUsed
	}
	return nil, errExpired
}

// A saga reserves a seat in one request, pays in the next and books in a third, and each
// may reach another server.
func Example_sagaWithATicket() {
	ctx := context.Background()
	store := memlease.NewStore()
	var servers []reservations
	for i := range 3 {
		client, stop := process(store, fmt.Sprint("server-", i))
		defer stop()
		servers = append(servers, reservations{client})
	}
	first, err := servers[0].acquire(ctx, "seat:12A", time.Minute)
	fmt.Println("reserved:", err)
	_, err = servers[1].acquire(ctx, "seat:12A", time.Minute)
	fmt.Println("for others it is taken:", errors.Is(err, hasp.ErrHeld))
	second, err := servers[1].refresh(ctx, first, time.Minute)
	fmt.Println("paid:", err)

	fmt.Println("empty:", servers[2].release(ctx, ""))
	fmt.Println("wrong:", errors.Is(servers[2].release(ctx, second[1:]), errBadTicket))
	fmt.Println("used twice:", servers[2].release(ctx, first))
	fmt.Println("booked:", servers[2].release(ctx, second))

	short, err := servers[0].acquire(ctx, "seat:12A", 500*time.Millisecond)
	fmt.Println("reserved:", err)
	time.Sleep(700 * time.Millisecond)
	fmt.Println("too late:", servers[0].release(ctx, short))
	// Output:
	// reserved: <nil>
	// for others it is taken: true
	// paid: <nil>
	// empty: the request has no ticket
	// wrong: true
	// used twice: the ticket has been used; another request has its successor
	// booked: <nil>
	// reserved: <nil>
	// too late: the reservation has expired
}

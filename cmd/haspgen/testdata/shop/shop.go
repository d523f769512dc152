// Package shop is what decorators are generated for in tests.
package shop

import (
	"context"
	"io"
	netip2 "net/netip"
	"time"
)

// ID is a number with a text of its own, which keys must not take.
type ID int64

func (ID) String() string { return "an ID" }

// Customer is embedded by pointer.
type Customer struct {
	Name   string
	Region *string
}

// Order has fields of many kinds.
type Order struct {
	*Customer
	ID     ID
	Items  []string
	Urgent bool
	From   netip2.Addr
	note   string
}

// Lister is embedded.
type Lister interface {
	List(context.Context, ...time.Duration) ([]*Order, error)
}

// Orders has every attribute.
type Orders interface {
	Lister
	io.Closer

	// Pay pays.
	//
	//hasp:lock key="order:{order.ID}"
	Pay(ctx context.Context, order *Order) error
	//hasp:lock key="customer:{order.Name}:{order.Region}" store=shop prefix=v1: expiration=2000 timeout=${SHOP_WAIT:1s} retry=50 refresh=0
	Deliver(c context.Context, order *Order, _ int, l, err, keys string) (time.Time, error)
	//hasp:lock key="item:{items}" key="order:{n}" store="" timeout=0
	Reserve(ctx context.Context, n uint8, items ...string) (left int, err error)
	//hasp:lock key="from:{order.From}:{order.Urgent}:{order.note}" client=remote
	Track(ctx context.Context, order Order) (<-chan string, map[string][]*Order, error)
	//hasp:lock key="report" shared
	Report(ctx context.Context, to io.Writer) (err error)
	//hasp:lock key="batch:{order.Items|raw}" manual=true
	Batch(ctx context.Context, order *Order) error

	Ping()
	Count(string) int
}

// Repo has type parameters.
type Repo[K ~string, V any] interface {
	//hasp:lock key="repo:{key}" client=auto
	Put(ctx context.Context, key ID, k K, v V) (V, error)
	Get(K) V
}

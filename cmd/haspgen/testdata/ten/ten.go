// Package ten has an interface of ten methods with every attribute of a directive.
package ten

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// Item has values that may be missing.
type Item struct {
	ID    string
	Nr    *int
	Host  net.IP
	Hosts []net.IP
	Addr  netip.Addr
	Label fmt.Stringer
	Tags  []string
	Names []*string
}

// Stock has one method for each way of locking.
type Stock interface {
	//hasp:lock key="item:{item.ID}"
	Default(ctx context.Context, item *Item) error
	//hasp:lock key="item:{id}" store=shop prefix=v1:
	Prefixed(ctx context.Context, id string) error
	//hasp:lock key="item:{id}" expiration=${TEN_TTL:2s} refresh=0
	Fixed(ctx context.Context, id string) error
	//hasp:lock key="item:{id}" expiration=2s refresh=1
	Renewed(ctx context.Context, id string) error
	//hasp:lock key="item:{id}" timeout=0
	Hasty(ctx context.Context, id string) (int, error)
	//hasp:lock key="item:{id}" timeout=${TEN_WAIT:1s} retry=${TEN_RETRY:100}
	Patient(ctx context.Context, id string) error
	//hasp:lock key="item:{id}" manual
	Manual(ctx context.Context, id string) error
	//hasp:lock key="item:{id}" shared
	Shared(ctx context.Context, id string) error
	//hasp:lock key="item:{id}" client=other
	Elsewhere(ctx context.Context, id string) error
	//hasp:lock key="tag:{item.Tags}" key="name:{item.Names}" key="item:{item.Nr}:{item.Host}:{item.Addr}:{item.Label}" key="host:{item.Hosts}"
	Many(ctx context.Context, item *Item) (string, error)
}

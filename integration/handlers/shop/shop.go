// Package shop has an interface whose methods run under locks by a decorator that haspgen
// writes.
package shop

import "context"

// Orders are what the tests call, with and without waiting.
type Orders interface {
	//hasp:lock key="order:{id}" store="" timeout=0
	Pay(ctx context.Context, id string) (string, error)
	//hasp:lock key="order:{id}" store="" timeout=20s
	PayInTurn(ctx context.Context, id string) (string, error)
}

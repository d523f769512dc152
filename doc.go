// Package hasp gives locks, leases and fencing tokens on the store a program already
// runs.
//
// A lock is a line of claims kept by the store: whoever wants a key stands in its
// line, and the front of the line holds. Every grant is a [Lease]: it expires by the
// store's clock unless it is renewed, which hasp does, it carries a fencing token that
// is larger than that of every grant before it, and its context ends, with cause
// [ErrLost], before anybody else can hold the key, unless somebody forced it or the
// store lost its data.
//
//	client, err := hasp.New(memlease.NewStore().Driver(), nil)
//	...
//	err = client.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
//		return pay(ctx)
//	})
//
// Errors tell apart what is held by somebody else ([ErrHeld]), lost ([ErrLost]), never
// held ([ErrNotHeld]), given back ([ErrReleased]), not answered ([ErrUnavailable]),
// refused by the store ([ErrRefused]), impossible there ([ErrUnsupported]), wrong in
// the call ([ErrInvalid]) and over because the client is closed ([ErrClosed]). An error
// is never permission.
//
// What is promised, by number (G1 to G12), and what is not, is in docs/guarantees.md.
package hasp

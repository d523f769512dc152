// Package elect lets one of many candidates lead, over any store of hasp.
//
// The candidates of an election stand in the line of one key, its name; the leader is
// the front of it. [Run] campaigns and calls a function each time this process leads:
//
//	err := elect.Run(ctx, client, "billing", func(ctx context.Context) error {
//		return bill(ctx) // ctx ends when this process no longer leads
//	}, nil)
//
// Each time of leading is a term, with a fencing token larger than that of every term
// before it. What holds for every term:
//
//   - By the store's clock there is one leader at a time, and a process believes that it
//     leads only inside its trust window (see hasp's guarantees G1 and G2).
//   - The work has returned before the claim leaves. Work that goes on after its context
//     has ended is reported, and the process stands in line again only when it has returned.
//   - Leadership is kept while the work drains, at shutdown and after [Elector.Resign], and
//     then handed to the next in line.
//   - An error is never permission: a store that is away ends the term in time, and the
//     campaign goes on, with pauses, until it is back.
//
// An election is one claim of its client, so a process that stands in many elections
// renews all of them together.
package elect

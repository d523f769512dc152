// Package fence keeps a holder that was paused, cut off or replaced from writing over
// those that came after it.
//
// No lease can stop a process that was asleep: between its last look at the lease and
// its write, the lease may have run out and somebody else may hold the key. Each later
// grant of a key carries a larger token, so whoever is written to can tell: it remembers
// the greatest token it has seen and refuses a smaller one with [ErrStale].
//
// The writing side has a lease and gives that; a shared lease and a store without tokens
// are refused, since such a token protects nothing. The receiving side has the plain
// token that came with the request, and says Admit:
//
//   - [Column] keeps the greatest token in a column of your own rows, [Table] in a table
//     of its own, in the transaction of your writes.
//   - [Gate] keeps it in memory, for what is no database.
//   - [SetHeader] sends the token with an HTTP request, [Middleware] checks it there.
//
// Tokens are compared per resource, and only those of one key order each other: fence by
// the key that was locked. They are int64 and above 2^53, which JavaScript and other
// readers of JSON round: send them as decimal strings, in Go with the tag
// `json:",string"`.
//
// A fence is no authentication. Whoever may write may also send a token.
package fence

// Package hasphttp runs HTTP handlers under a lock of hasp.
//
//	key, err := hasphttp.Key("order:{orderId}")
//	mux.Handle("POST /orders/{orderId}/pay", hasphttp.Middleware(client, key, nil)(pay))
//
// The handler's context carries the lease: [hasp.FromContext] answers it, and with it the
// fencing token. The context ends when the lease is lost, and an answer of success or a
// redirect that the handler gives after that is replaced by 503. What a handler has begun
// to answer before goes on.
//
// The lock is kept until the handler returns. One that leaves work behind, as
// http.TimeoutHandler does with what it cuts short, leaves it without the lock: put that
// around the lock, not inside.
//
// Unlike the locks of package hasp a request does not wait unless [Options].Wait says so.
//
// # Answers
//
// What keeps a handler from running is answered as JSON,
// {"success":false,"message":"Lock not acquired"}, with these status codes:
//
//	400  a value for the key is missing or cannot stand in a key
//	409  somebody else has the lock; Retry-After says when it expires unless renewed
//	499  the client has gone while its request waited
//	500  the options, the template or the route cannot be right; the handler never runs
//	503  the store is unreachable or refuses, the server shuts down, or the lease was lost
//
// 503 is also what [Leader] answers where another process leads.
//
// [Options].OnError replaces all of this, and may call [Error] for what it does not
// replace.
//
// # Clients that go away
//
// A request that waits leaves the line when its client hangs up. The server notices that
// only once the request's body has been read; so a request that is going to wait has its
// body read first, up to 64 KiB and for as long as it may wait, and the handler reads it
// from memory. With HTTP/1 and a longer body the line is left when Wait is over. A client that hangs up while the
// handler runs ends its context, as ever; the lock is kept until the handler has returned.
package hasphttp

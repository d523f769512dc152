// Package redislease keeps lines in Redis, Valkey or a Redis Cluster, over go-redis v9.
//
// # Requirements
//
// Redis 6.2 or newer, or Valkey: one server, Sentinel, or a cluster; the master, not a
// replica. maxmemory-policy must be noeviction, since every record has an expiry and an
// evicting server would drop locks. The user needs the commands Check tries, on keys
// that begin with "hasp", and channels that begin with "hasp:". Without the channels
// locks work, and waiting polls.
//
// *redis.Ring is refused. The client stays the caller's. Steps go by at most four
// connections to each server, fewer where the client's pool is smaller, which the driver
// makes with the client's options, dialer and credentials, and closes in Close: it must
// be able to cut one whose caller has given up. Of a client that has hooks when New is
// called, an OnConnect or a provider of credentials, and of one of Sentinel, the pool is
// used instead, with at most four commands at a time that are answered. Checks and listings go by the pool, and one more connection listens.
// Commands are sent once: where go-redis would send again by itself, hasp does, as it
// knows which repeats are harmless.
//
// # Storage layout
//
// The line of a key is the string "hasp:{key}" and, once more than one claim stands in
// it, two sorted sets and a hash beside it. docs/stores.md in the repository describes
// values, channels and messages. Every record begins with the layout version; a newer
// one, or a foreign value, is driver.ErrRefused and stays untouched. All keys of a line
// lie in one slot. Each verb is one Lua script, which Redis runs alone, so a step is
// atomic. What a script writes is written before it publishes, and a refused message
// stops nothing.
//
// # Clock
//
// Expiries and numbers come from the server's clock (TIME and PTTL), in milliseconds
// and microseconds. A master promoted with a clock ahead frees keys early by that much.
//
// # Wake-ups
//
// The push connection subscribes to one channel named by the client's part of its IDs,
// and to one for each watched key. Also in a cluster these are plain channels, which
// the servers pass on to each other. A subscription counts when a message the client
// sends to itself arrives by it; then, and after each gap, comes Missed. A connection
// quiet for 3 s is asked whether it lives. While nothing is heard, waiting polls.
//
// # Limits
//
// A capacity is at most 2^48, a life at most 400 days. Several keys in a cluster need
// Options.Slot. A cluster's failover, like Sentinel's, can forget what no replica has
// yet: see Options.Replicas. Standing.LookAgain takes the first 16 claims of a line into
// account: for a claim further back it may be early, never late. Listing a prefix reads
// the names of all keys of the database, for each page; listing a line of more than 100
// claims reads it in parts, which may differ in time. On Redis 6.2 a server out of
// memory may refuse to renew a claim in a crowd, or to let it leave; from 7.0 on it never
// does.
package redislease

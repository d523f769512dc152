package main

// reasons says why a goal is missed, by the row's id. It is kept by hand, so that it
// stays when the table is made anew; a reason is printed only while its goal is missed.
func reasons() map[string]string {
	const (
		steps = "A lock with a token and a place in line is more work than a key that is set. At one call at a time the server's caches are " +
			"cold: its two scripts then take some 0.03 ms, the script of the raw release 0.007 ms; the client notes the claim beside them."
		two = "Two goroutines seldom have something to share, so this is like one goroutine: the server's scripts are the difference."
		few = "Calls that coincide share scripts and round trips, so that a pair costs the server about half of what bsm/redislock costs " +
			"it. What is left are the two steps themselves and the client's side of two calls; raw locks with AutoPipeline cost " +
			"the server half of that again, and miss the goal, too."
		parts = "Beside the two messages hasp notes the claim before it is sent and lets each call end in time on a goroutine of its own, " +
			"some 0.05 ms of the client's time; on a busy machine each change of goroutines costs more."
	)
	return map[string]string{
		"goroutines-rate": "After 16 grants in the process one step asks the store again whether others have come; its round trip is most of the time.",
		"sticky-rate": "A claim has 64 tokens, so one lock in 64 joins anew: that alone is a 128th of the two round trips without Sticky. " +
			"The rest is the client's own work for a lease, which takes longer.",
		"free-background":  steps,
		"free-cancellable": steps,
		"free-2":           two,
		"free-4":           two,
		"free-64":          few,
		"free-256":         few,
		"handover-256-p50": "By less than two rounds of this benchmark differ.",
		"contention-rate": "Each hand-over is two scripts and a message, between different clients: a server that is woken twice and runs " +
			"each script with cold caches (some 0.03 ms), and a client that is woken three times, on one core for all of them.",
		"renewal-wall":    "By less than two rounds of this benchmark differ: 157 calls of 64 locks.",
		"renewal-longest": "Calls of 64 locks are meant to stay below it; the longest of many also has what the machine did meanwhile.",
		"join-fresh":      "At the goal's edge; the script also reads the clock and writes the token. Where joins coincide one costs less than that EVALSHA.",
		"memory-alone": "Key and value are each one size of the server's allocator above a raw lock's: the key by hasp's prefix and braces, " +
			"the value by number, id and the client's name.",
		"longest-0": "A step removes up to 64 of the dead; the longest of many also has what the machine did meanwhile.",
		"longest-1": "A step removes up to 64 of the dead; the longest of many also has what the machine did meanwhile.",
		"longest-2": "The longest of some thousand calls, so it also has what the machine did meanwhile; what it is without that is not known.",

		"postgres-free":                  parts,
		"postgres-free, commits on disk": parts,
		"postgres-held": "A renewal updates one row. But the sweep writes a line that it finds in use, when its lock is 45 s old, then at twice the age " +
			"each time; on a busy machine taking so many locks lasts until then.",
		"postgres-growth": "A line outlives its lock by 45 s at this TTL, and a page of an index is used again after two vacuums more: " +
			"tables and indexes have come to their size after two to three minutes, and stay there.",
	}
}

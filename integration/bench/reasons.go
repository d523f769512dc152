package main

// reasons says why a goal is missed, by the row's id. It is kept by hand, so that it
// stays when the table is made anew; a reason is printed only while its goal is missed.
func reasons() map[string]string {
	const (
		apart = "hasp has no hand-over inside a process yet: each goroutine stands in the store's line by itself."
		steps = "A lock with a token and a place in line is more work than a key that is set: the server spends 1.6 x the time of " +
			"a script with SET alone on it (see the rows on joins), and more on its release."
		few = "hasp keeps at most four commands in flight (G8), where the others use a connection for each that waits, or one " +
			"pipeline without a bound; calls that coincide share round trips, but too few do."
		parts = "Beside the two messages hasp notes the claim before it is sent and lets each call end in time on a goroutine of its own, " +
			"some 0.05 ms of the client's time; on a busy machine each change of goroutines costs more."
	)
	return map[string]string{
		"goroutines-memory": apart,
		"goroutines-Redis":  apart + " So this is a hand-over by the server, with its round trips.",
		"free-background":   steps,
		"free-cancellable":  steps,
		"free-2":            few,
		"free-4":            few,
		"free-64":           few,
		"free-256":          few,
		"handover-256-p50":  "By less than two rounds of this benchmark differ.",
		"contention-rate":   "Each hand-over is two scripts and a message, about 0.1 ms of the server's time here; what of that could be saved is not known.",
		"renewal-wall":      "By less than two rounds of this benchmark differ: 125 calls of eighty locks.",
		"renewal-longest":   "Calls of eighty locks are meant to stay below it; the longest of many also has what the machine did meanwhile.",
		"join-fresh":        "At the goal's edge; the script also reads the clock and writes the token.",
		"longest-1":         "A step removes up to 64 dead readers, each from two records. With fewer to a step those behind would wait for more steps.",
		"longest-2":         "The longest of some thousand calls, so it also has what the machine did meanwhile; what it is without that is not known.",

		"postgres-free":                  parts,
		"postgres-free, commits on disk": parts,
		"postgres-held": "Claims that are due within a quarter of an interval are renewed together. Locks that were taken one after the other, " +
			"over longer than that, are renewed in up to four batches in each interval, and a batch updates one row.",
	}
}

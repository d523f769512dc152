package main

// reasons says why a goal is missed, by the row's id. It is kept by hand, so that it
// stays when the table is made anew; a reason is printed only while its goal is missed.
func reasons() map[string]string {
	const apart = "hasp has no hand-over inside a process yet: each goroutine stands in the store's line by itself."
	return map[string]string{
		"goroutines-memory": apart,
		"goroutines-Redis":  apart + " So this is a hand-over by the server, with its round trips.",
	}
}

package hasp

import "time"

// waitLife bounds the life of a waiting claim, whatever the TTL, so that a dead
// waiter costs a line no more than this.
const waitLife = 6 * time.Second

// answerLimit is how long a call goes on without an answer of the store.
const answerLimit = 5 * time.Second

// margin is what a trust window is shorter than the life the store answered: room
// for clocks that run at different speeds (G2).
func margin(life time.Duration) time.Duration {
	return max(life/100, 5*time.Millisecond)
}

// trustedUntil is the end of the trust window that an answer gives: counted from
// the sending of the call it answers, since the store may have set the expiry at
// any moment after that (G2, P2).
func trustedUntil(sent time.Time, life time.Duration) time.Time {
	return sent.Add(life - margin(life))
}

// interval is the time between two renewals of a claim of that life: two of three
// may fail.
func interval(life time.Duration) time.Duration { return life / 3 }

// retryPause is the time to wait after the nth failed renewal in a row, so that
// several tries fit into what is left of the trust.
func retryPause(life time.Duration, failures int) time.Duration {
	first := min(max(life/50, 5*time.Millisecond), 250*time.Millisecond)
	return min(first<<min(failures, 10), interval(life)/2)
}

// rememberFor is how long a store remembers an id that was given up: as long as a
// late Join of it could live.
func rememberFor(ttl, grace time.Duration) time.Duration {
	return max(2*(ttl+grace), 10*time.Second)
}

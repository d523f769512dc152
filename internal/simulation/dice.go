package simulation

import (
	"math/rand/v2"
	"time"
)

// Dice is the seed of a run: whoever names himself gets the same throws again.
type Dice uint64

// For answers the throws of one actor, named by numbers.
func (d Dice) For(name ...uint64) Throws {
	h := mix(uint64(d))
	for _, n := range name {
		h = mix(h ^ n)
	}
	return Throws{rand.New(rand.NewPCG(h, mix(h)))}
}

// mix spreads the bits of x (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Throws is a sequence of throws of the dice.
type Throws struct{ *rand.Rand }

// Chance is true in that many of a hundred throws.
func (t Throws) Chance(percent int) bool { return t.IntN(100) < percent }

// Between answers a duration from a to b, to the nanosecond.
func (t Throws) Between(a, b time.Duration) time.Duration {
	return a + time.Duration(t.Int64N(int64(b-a)+1))
}

// Often answers a duration from a to b of which short ones are the more likely.
func (t Throws) Often(a, b time.Duration) time.Duration {
	return t.Between(a, t.Between(a, t.Between(a, b)))
}

// Pick answers one of several.
func Pick[T any](t Throws, of ...T) T { return of[t.IntN(len(of))] }

package simulation

import "time"

// Weather is what goes wrong in a run, in percent of the calls or signals unless it
// says otherwise.
type Weather struct {
	Name string

	LoseCall   int // the request never arrives
	LoseReply  int // the store does it, and its answer never arrives
	Break      int // the call fails at once with an unknown outcome, done or not
	Refuse     int // the store says no and does nothing
	Slow       int // the request takes long
	SlowReply  int // the answer takes long
	Copy       int // the request arrives once more, at once or late
	LoseSignal int
	SlowSignal int
	CopySignal int
	MissSignal int // of the lost ones: Missed follows some time later
	Forget     int // a failover told a waiting claim of a grant and then forgot it

	Pauses int           // of a client: as if it had been stopped or cut off
	Pause  time.Duration // how long at most
	Wipes  int           // of the store

	Crowded bool // everybody wants one key, with a short TTL

	Ends time.Duration // from then on the weather is calm
}

// Weathers are the kinds of weather; a seed has one of them.
func Weathers() []Weather {
	return []Weather{
		{Name: "calm"},
		{Name: "deaf", LoseSignal: 100},
		{Name: "lossy", LoseCall: 8, LoseReply: 12, Break: 8, LoseSignal: 15, MissSignal: 50, Ends: 40 * time.Second},
		{Name: "slow", Slow: 15, SlowReply: 15, SlowSignal: 25, CopySignal: 10, Ends: 40 * time.Second},
		{Name: "doubled", Copy: 40, CopySignal: 40, SlowSignal: 20, LoseReply: 10, Ends: 40 * time.Second},
		{Name: "paused", Pauses: 3, Pause: 12 * time.Second, LoseReply: 3, SlowSignal: 10, Ends: 40 * time.Second},
		{
			Name: "stale", LoseReply: 30, SlowSignal: 60, CopySignal: 30, Pauses: 4, Pause: 6 * time.Second, Ends: 40 * time.Second,
			Crowded: true,
		},
		{Name: "wiped", Wipes: 3, LoseReply: 5, Slow: 5, LoseSignal: 10, Ends: 40 * time.Second},
		{Name: "forgetful", Forget: 15, LoseReply: 10, SlowReply: 10, Wipes: 1, Ends: 40 * time.Second},
		{
			Name: "stormy", LoseCall: 6, LoseReply: 10, Break: 6, Refuse: 2, Slow: 10, SlowReply: 10, Copy: 15,
			LoseSignal: 20, SlowSignal: 20, CopySignal: 20, MissSignal: 40, Forget: 2,
			Pauses: 2, Pause: 8 * time.Second, Wipes: 2, Ends: 40 * time.Second,
		},
	}
}

// WeatherOf answers the weather of a seed, or the one of that name, if there is one.
func WeatherOf(seed uint64, name string) Weather {
	all := Weathers()
	for _, w := range all {
		if w.Name == name {
			return w
		}
	}
	return all[seed%uint64(len(all))]
}

// Delays of the network.
const (
	quick   = 20 * time.Microsecond
	usual   = 400 * time.Microsecond
	slowest = 4 * time.Second // of a request or an answer
	latest  = 8 * time.Second // of a copy
	lingers = 40 * time.Millisecond
)

// fate is what happens to one call.
type fate struct {
	lost, mute, broken, refused bool

	there, back time.Duration
	linger      time.Duration // how long after its context's end the call may still be answered
	copied      bool
	copyAfter   time.Duration
}

// of throws the fate of a call sent at now.
func (w *Weather) of(t Throws, now time.Duration) fate {
	f := fate{there: t.Between(quick, usual), back: t.Between(quick, usual), linger: t.Often(0, lingers)}
	if now >= w.Ends {
		return f
	}
	f.lost = t.Chance(w.LoseCall)
	f.mute = t.Chance(w.LoseReply)
	f.broken = t.Chance(w.Break)
	f.refused = t.Chance(w.Refuse)
	if t.Chance(w.Slow) {
		f.there = t.Often(quick, slowest)
	}
	if t.Chance(w.SlowReply) {
		f.back = t.Often(quick, slowest)
	}
	f.copied = t.Chance(w.Copy)
	f.copyAfter = t.Often(quick, latest)
	return f
}

// signalFate is what happens to one signal.
type signalFate struct {
	lost   bool
	after  time.Duration
	again  time.Duration // once more after that; 0: no
	missed time.Duration // Missed after that; 0: no
}

func (w *Weather) ofSignal(t Throws, now time.Duration) signalFate {
	f := signalFate{after: t.Between(quick, usual)}
	if w.Ends > 0 && now >= w.Ends {
		return f
	}
	f.lost = t.Chance(w.LoseSignal)
	if t.Chance(w.SlowSignal) {
		f.after = t.Often(quick, slowest)
	}
	if t.Chance(w.CopySignal) {
		f.again = t.Often(quick, latest)
	}
	if f.lost && t.Chance(w.MissSignal) {
		f.missed = t.Often(quick, slowest)
	}
	return f
}

// span is a time in which a client is paused.
type span struct{ from, to time.Duration }

// pausesOf throws when a client is paused.
func (w *Weather) pausesOf(t Throws) []span {
	var spans []span
	for range w.Pauses {
		from := t.Between(0, w.Ends)
		spans = append(spans, span{from, from + t.Often(10*time.Millisecond, w.Pause)})
	}
	return spans
}

// past answers at, or when the last pause around it has ended; jumble spreads what a
// pause held back.
func past(spans []span, at time.Duration, jumble func() time.Duration) time.Duration {
	for moved := true; moved; {
		moved = false
		for _, s := range spans {
			if s.from <= at && at < s.to {
				at = s.to + jumble()
				moved = true
			}
		}
	}
	return at
}

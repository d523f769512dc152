package history

import "fmt"

// Summary counts what happened, so that a run which did nothing is not taken for one
// without faults.
type Summary struct {
	Calls, Held, Refused, Released, Lost, Killed, Wiped, Forced, Seen int
	// Contended is how many leases were wanted while another lease on one of their keys
	// was held.
	Contended int
	// Why counts what ended the calls without a lease.
	Why map[string]int
}

// Summarize counts.
func Summarize(events []Event) Summary {
	s := Summary{Why: make(map[string]int)}
	holders := make(map[string]int)
	wanted := make(map[string]bool)
	open := make(map[string][]string)
	for _, e := range events {
		switch e.Kind {
		case Want:
			s.Calls++
			for _, key := range e.Keys {
				wanted[e.Lease] = wanted[e.Lease] || holders[key] > 0
			}
			open[e.Lease] = e.Keys
		case Held:
			s.Held++
			if wanted[e.Lease] {
				s.Contended++
			}
			for _, key := range open[e.Lease] {
				holders[key]++
			}
		case Refused:
			s.Refused++
			s.Why[e.Text]++
		case Over, Releasing:
			if e.Text == "lost" {
				s.Lost++
			}
			for _, key := range open[e.Lease] {
				holders[key]--
			}
			delete(open, e.Lease)
		case Released:
			s.Released++
		case Killing:
			s.Killed++
		case Wiped:
			s.Wiped++
		case Forced:
			s.Forced++
		case Seen:
			s.Seen++
		case Trusted, Wiping, Forcing, Note:
		}
	}
	return s
}

// String lists the counts.
func (s Summary) String() string {
	return fmt.Sprintf("%d calls: %d held (%d contended), %d refused %v, %d released, %d lost; %d processes killed, %d wipes, %d forced, %d looks at lines",
		s.Calls, s.Held, s.Contended, s.Refused, s.Why, s.Released, s.Lost, s.Killed, s.Wiped, s.Forced, s.Seen)
}

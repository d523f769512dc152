package guard

// Plan is the guard's arithmetic, for its table.
type Plan struct{ plan }

// NewPlan has its first times.
func NewPlan(term, kill Instant) *Plan { return &Plan{plan{term: term, kill: kill}} }

// Trust is plan.trust.
func (p *Plan) Trust(term, kill Instant) { p.trust(term, kill) }

// Lost is plan.lost.
func (p *Plan) Lost(kill Instant) bool { return p.lost(kill) }

// Ended is plan.ended.
func (p *Plan) Ended(now Instant) bool { return p.ended(now) }

// Hangup is plan.hangup.
func (p *Plan) Hangup() { p.hangup() }

// Due is plan.due.
func (p *Plan) Due(now Instant) (interface{ String() string }, bool) { return p.due(now) }

// Next is plan.next.
func (p *Plan) Next() Instant { return p.next() }

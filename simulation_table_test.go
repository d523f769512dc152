package hasp_test

// brokenFacades are those the simulation must tell from the right one.
var brokenFacades = []broken{
	{"trust counts from the answer", "", []edit{{
		"lease_state.go",
		"if until := trustedUntil(call.at, a.Life); until.After(s.until) {",
		"if until := trustedUntil(time.Now(), a.Life); until.After(s.until) {",
	}}},
	{"trust counts from the last send", "", []edit{
		{"claim.go", "c.sent++\n", "c.sent++\n\tc.lastSend = now\n"},
		{"claim.go", "	wake     chan struct{}", "	lastSend time.Time\n	wake     chan struct{}"},
		{"claim.go", "c.stay = c.stay.answered(call, a, c.sent)", "call.at = c.lastSend\n\tc.stay = c.stay.answered(call, a, c.sent)"},
	}},
	{"no margin", "", []edit{{"term.go", "return max(life/100, 5*time.Millisecond)", "return 0"}}},
	{"trust counts with the life that was asked for", "", []edit{{
		"claim.go",
		"c.stay = c.stay.answered(call, a, c.sent)",
		"a.Life = c.ttl\n\tc.stay = c.stay.answered(call, a, c.sent)",
	}}},
	{"Grace counts as trust", "", []edit{{
		"claim.go",
		"c.stay = c.stay.answered(call, a, c.sent)",
		"a.Life += c.want.opts.Grace\n\tc.stay = c.stay.answered(call, a, c.sent)",
	}}},
	{"a signal moves the window", "", []edit{{
		"claim.go",
		"c.stay = c.stay.granted(s.Number, c.sent)",
		"c.stay = c.stay.granted(s.Number, c.sent)\n\t\tif c.stay.life > 0 {\n\t\t\tc.stay.until = trustedUntil(now, c.stay.life)\n\t\t}",
	}}},
	{"the signal of an earlier stay is believed", "stale", []edit{{
		"lease_state.go", "case s.phase == over, number < s.number:", "case s.phase == over:",
	}}},
	{"a signal is used however little trust is left", "", []edit{{
		"lease_state.go", "s.until.Sub(now) >= interval(s.life)", "s.until.After(now)",
	}}},
	{"a fixed lease is not renewed at its grant", "", []edit{{
		"claim.go", "return c.want.opts.NoRenew || c.e.feats.ConfirmGrant", "return c.e.feats.ConfirmGrant",
	}}},
	{"a grant is not confirmed where the store wants that", "", []edit{{
		"claim.go", "return c.want.opts.NoRenew || c.e.feats.ConfirmGrant", "return c.want.opts.NoRenew",
	}}},
	{"waiting after the grant is ignored", "", []edit{{
		"lease_state.go", "a.State == driver.Waiting && s.phase >= told && call.ordinal > s.learnt", "false",
	}}},
	{"waiting from before the grant ends the lease", "", []edit{{
		"lease_state.go", "s.phase >= told && call.ordinal > s.learnt", "s.phase >= told",
	}}},
	{"the end of a stay is not noticed", "", []edit{{
		"claim.go", "c.stay = c.stay.ended(s.Number, s.Revoked)", "",
	}}},
	{"gone is ignored", "", []edit{{
		"lease_state.go", "s.phase, s.revoked = over, a.Revoked", "s.revoked = a.Revoked",
	}}},
	{"a lost lease is held again", "forgetful", []edit{{
		"lease_state.go", "	if s.phase == over {\n\t\treturn s\n\t}\n	switch a.State {", "	switch a.State {",
	}}},
	{"an expired answer makes a lease", "", []edit{
		{"lease_state.go", "if s.phase == holding && !now.Before(s.until) {", "if false {"},
	}},
	{"the end of the trust is not watched", "", []edit{
		{"due.go", "if c.renews() && c.next.Before(c.stay.until) {", "if c.renews() {"},
		{"claim.go", "case c.fate == owned && c.stay.until.Before(c.next):", "case false:"},
	}},
	{"renewed too seldom", "", []edit{{"term.go", "return life / 3", "return life"}}},
	{"the claim is registered after its Join", "", []edit{
		{"claim.go", "	e.claims[c.id] = c // before", "	// before"},
		{"acquire.go", "	if err == nil {\n		return nil\n	}\n	a.tick()", "	if err == nil {\n		a.e.list(c)\n		return nil\n	}\n	a.tick()"},
	}},
	{"a lost lease is left at once", "", []edit{{
		"claim.go", "	c.lease.end(lost)\n", "	c.lease.end(lost)\n	c.giveUp(now)\n",
	}}},
	{"an id is used again after it was gone", "", []edit{{
		"acquire.go", "	a.claim = c\n	if c.gate = a.gate;",
		"	if old := a.claim; old != nil {\n		c.id = old.id\n		a.e.list(c)\n	}\n	a.claim = c\n	if c.gate = a.gate;",
	}}},
	{"a Join is repeated after its claim was gone", "", []edit{
		{"acquire.go", "	if c.stay.phase != joining || c.fate != wanted { // or its call has gone\n		c.mu.Unlock()\n		return nil\n	}\n", ""},
		{"acquire.go", "if err != nil && c.stay.phase == joining {", "if err != nil {"},
	}},
	{"a claim that was given up is not left", "", []edit{{
		"acquire.go", "	a.part(why, now)\n	return why\n", "	a.e.forget(c)\n	return why\n",
	}}},
	{"a leave is not repeated", "", []edit{{
		"claim.go", "		c.failures++\n		c.next = now.Add(min(", "		c.e.forget(c)\n		return\n		c.next = now.Add(min(",
	}}},
	{"a leave does not say that a Join is unanswered", "", []edit{
		{"claim.go", "job.item.Unanswered = c.joins > 0", ""},
		{"release.go", "Unanswered: c.joins > 0", "Unanswered: false"},
	}},
	{"a repeated leave that finds nothing is always success", "", []edit{{
		"release.go", "if was || repeated && l.claim.e.clk.now().Before(l.claim.stay.until) {", "if was || repeated {",
	}}},
	{"a leave that finds nothing is success", "", []edit{{
		"release.go", "if was || repeated && l.claim.e.clk.now().Before(l.claim.stay.until) {", "if was || true {",
	}}},
	{"a repeated leave that finds nothing is a loss", "", []edit{{
		"release.go", "if was || repeated && l.claim.e.clk.now().Before(l.claim.stay.until) {", "if was {",
	}}},
	{"Release ends the lease when it is answered", "", []edit{{
		"release.go", "		l.end(ErrReleased)\n		if r", "		if r",
	}}},
	{"Keep and Detach end the lease when they are answered", "", []edit{{
		"park.go", "	l.end(ErrReleased)\n	c.settle(now)\n	return nil", "	c.settle(now)\n	return nil",
	}}},
	{"Close releases what is held", "", []edit{{
		"client.go", "c.lease.end(ErrClosed)", "c.lease.end(ErrClosed)\n\t\t\tc.giveUp(e.clk.now())",
	}}},
	{"a resumed lease keeps its token", "", []edit{{
		"resume.go", "c.takeOver(ctx, w, p.ref, p.index+1)", "c.takeOver(ctx, w, p.ref, p.index)",
	}}},
	{"signals are not heard", "", []edit{{"listener.go", "case driver.Granted, driver.Turn, driver.Ended:\n\t\te.mu.Lock()", "case driver.Turn, driver.Ended:\n\t\te.mu.Lock()"}}},
	{"a lease goes on however little trust is left", "", []edit{{
		"gate_handover.go", "	s.phase = told\n	return s.used(now)", "	return s",
	}}},
	{"a lease goes on with its token", "", []edit{{"gate_handover.go", "c.bequeath(t, c.index+1, now)", "c.bequeath(t, c.index, now)"}}},
	{"a lease goes on whoever else waits", "", []edit{{
		"gate_handover.go", " && c.rivals.allow(now, handoffs)", "",
	}}},
	{"who waits outside is not asked for", "", []edit{{"gate.go", "now.Sub(r.asked) > rivalsFresh", "r.asked.IsZero()"}}},
	{"a lost lease keeps its seat in the gate", "", []edit{{"claim.go", "	c.unseat()\n", ""}}},
	{"a kept lease keeps its seat in the gate", "", []edit{{"park.go", "	c.unseat()\n", ""}}},
	{"the next joins, and the one before does not leave", "", []edit{{
		"gate_handover.go", "j.Leaving = false, 0, &r.leave", "j.Leaving = false, 0, nil",
	}}},
	{"a cancelled call keeps the seat", "", []edit{{"gate_seats.go", "	a.e.gates.vacate(g)\n", ""}}},
	{"a sticky lease goes on with its token", "", []edit{{"sticky.go", "a.gate}, c.index+1, now)", "a.gate}, c.index, now)"}}},
	{"a sticky lease stays whoever wants it", "", []edit{{"sticky.go", "c.stay.phase == over || c.rivals.behind ||", "c.stay.phase == over ||"}}},
	{"a sticky lease is not looked at", "deaf", []edit{
		{"due.go", "	if c.sticky() {", "	if false {"},
		{"sticky.go", "look.Before(c.next)", "false"},
	}},
	{"Close keeps sticky leases", "", []edit{{"client.go", "c.retire(e.clk.now())", ""}}},
	{"a nested release ends the outer lease", "", []edit{{
		"release.go", "	l.end(ErrReleased)\n	// or", "	l.outer.end(ErrReleased)\n	// or",
	}}},
}

package drivertest

// Case is one sentence of the contract.
type Case struct {
	Concept string // what it is about, and its file
	Name    string // a sentence
	needs   need   // what of the store it needs
	strict  bool   // its verdict does not rest on time, so it gets no second try
	run     func(*bench) error
}

// Cases answers all cases, concept by concept.
func Cases() []Case {
	var all []Case
	for _, g := range []struct {
		concept string
		cases   []Case
	}{
		{"features", features()},
		{"joining", joining()},
		{"try", try()},
		{"order", order()},
		{"limits", limits()},
		{"weights", weights()},
		{"readers", readers()},
		{"several keys", several()},
		{"renewal", renewal()},
		{"batches", batches()},
		{"fixing", fixing()},
		{"grace", grace()},
		{"death", death()},
		{"sessions", sessions()},
		{"stays", stays()},
		{"leaving", leaving()},
		{"remembering", remembering()},
		{"replacing", replacing()},
		{"take-over", takeover()},
		{"revoking", revoking()},
		{"forcing", forcing()},
		{"signals", signals()},
		{"watching", watching()},
		{"listing", listing()},
		{"pages", pages()},
		{"caps", caps()},
		{"idempotence", idempotence()},
		{"cancellation", cancellation()},
		{"closing", closing()},
		{"numbers", numbers()},
		{"input", input()},
		{"keys", keys()},
		{"concurrency", concurrency()},
		{"model", model()},
		{"clock", clock()},
		{"loss", loss()},
	} {
		for _, c := range g.cases {
			c.Concept = g.concept
			all = append(all, c)
		}
	}
	return all
}

func (c Case) title() string { return c.Concept + "/" + c.Name }

// alone says that the case does something to the whole store.
func (c Case) alone() bool { return c.needs&(wipeHook|stepHook|stallHook|cutHook) != 0 }

package proxy

import (
	"bytes"
	"slices"
	"time"
)

// Fault is what happens to one request.
type Fault uint8

const (
	// ResetRequest resets the connection instead of forwarding the request.
	ResetRequest Fault = iota + 1
	// DropReply forwards the request, loses its reply and resets the connection.
	DropReply
	// SwallowReply forwards the request, loses its reply and says nothing more on the
	// connection.
	SwallowReply
	// DelayReply forwards the request and delays its reply, and what follows it on that
	// connection, by Delay.
	DelayReply
)

// Rule says which request is treated badly, and how. It counts once.
type Rule struct {
	Fault Fault
	Match string // what the request contains; requests are told apart as they arrive
	Skip  int    // that many matching requests pass first
	Delay time.Duration

	done chan struct{}
}

// Spoil applies a rule to the first request that it matches, on any connection. The
// channel is closed when that has happened: when the request was reset, or its reply
// lost or delayed.
func (p *Proxy) Spoil(r Rule) (happened <-chan struct{}) {
	r.done = make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &r)
	return r.done
}

// Forgive forgets all rules that have not happened.
func (p *Proxy) Forgive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// ruleFor takes the rule that counts for a request, if there is one.
func (p *Proxy) ruleFor(request []byte) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.rules {
		if !bytes.Contains(request, []byte(r.Match)) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		p.rules = slices.Delete(p.rules, i, i+1)
		return r
	}
	return nil
}

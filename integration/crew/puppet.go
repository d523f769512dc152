package crew

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/hasp-dev/hasp/integration/process"
)

// Puppet is a process that does what it is told.
type Puppet struct {
	*process.Process

	mu      sync.Mutex
	orders  int
	answers map[int]chan Answer
	news    map[string]chan Answer
}

// StartPuppet starts one on a store. env has further variables for it.
func StartPuppet(name, store string, env ...string) (*Puppet, error) {
	p := &Puppet{answers: make(map[int]chan Answer), news: make(map[string]chan Answer)}
	var err error
	if p.Process, err = Start(Brief{Name: name, Store: store}, p.hear, env...); err != nil {
		return nil, err
	}
	if err := p.Await("on stage"); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// hear sorts what the process says.
func (p *Puppet) hear(line string) {
	text, ok := strings.CutPrefix(line, answerMark)
	if !ok {
		return
	}
	var a Answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return // the process was killed while it wrote
	}
	if a.Over {
		select {
		case p.newsOf(a.Lease) <- a:
		default: // nobody has asked for the news of this name so far
		}
		return
	}
	p.mu.Lock()
	to := p.answers[a.N]
	p.mu.Unlock()
	to <- a
}

// Begin gives an order and answers where its answer will come.
func (p *Puppet) Begin(o Order) (<-chan Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orders++
	o.N = p.orders
	to := make(chan Answer, 1)
	p.answers[o.N] = to
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if _, err := p.In.Write(append(text, '\n')); err != nil {
		return nil, fmt.Errorf("puppet: %w\n%s", err, p.Output())
	}
	return to, nil
}

// Over is where the news comes that a lease is over: of each lease of that name, the
// first eight of which are kept until they are read.
func (p *Puppet) Over(lease string) <-chan Answer { return p.newsOf(lease) }

func (p *Puppet) newsOf(lease string) chan Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	news, ok := p.news[lease]
	if !ok {
		news = make(chan Answer, 8)
		p.news[lease] = news
	}
	return news
}

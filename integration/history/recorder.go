package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
)

// Recorder appends events to a history. Several may write to one file, from several
// processes, and several goroutines may use one.
type Recorder struct {
	who  string
	file *os.File

	mu  sync.Mutex
	err error // the first that a write met
}

// Open opens a history to write to. who names the process in its events.
func Open(path, who string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Recorder{who: who, file: f}, nil
}

// Add writes one event, with the time of now and the name of the process where it has
// none. When it returns, the event has its place in the order.
func (r *Recorder) Add(e Event) {
	e.At = Now()
	if e.Who == "" {
		e.Who = r.who
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err == nil {
			r.err = err
		}
	}
}

// Close ends the writing, and answers the first error that it met.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.file.Close(); r.err == nil {
		r.err = err
	}
	return r.err
}

// Load reads a history.
func Load(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return Read(f)
}

// Read reads a history. A line that cannot be read is an error: one write is one line,
// also where the writer was killed.
func Read(r io.Reader) ([]Event, error) {
	var events []Event
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d of a history: %w", len(events)+1, err)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Limit bounds every wait for a program: for its being ready, for its end.
const Limit = time.Minute

// Process is one program that runs, or has run.
type Process struct {
	// In is the program's standard input.
	In io.WriteCloser

	cmd    *exec.Cmd
	out    *output
	exited chan struct{}
	err    error // why it ended; read after exited
}

// Start starts a program. Its standard output and error are read line by line; each
// line is also given to hear, if that is not nil, from one goroutine.
func Start(cmd *exec.Cmd, hear func(line string)) (*Process, error) {
	p := &Process{cmd: cmd, out: newOutput(hear), exited: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// A group of its own: what a terminal sends to the tests does not reach it.
	cmd.SysProcAttr.Setpgid = true
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.In = in
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	cmd.WaitDelay = time.Second // what it has started may hold its output open
	go p.out.read(read)
	started := make(chan error, 1)
	go func() {
		// The death signal comes when the thread ends that started the program, so this
		// thread waits as long as that runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
		_ = write.Close()
		<-p.out.over
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the program has ended and its output has been read.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Await waits for a line of output that contains text.
func (p *Process) Await(text string) error {
	found := p.out.watch(text)
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	select {
	case <-found:
		return nil
	case <-p.exited:
		return fmt.Errorf("%s ended (%w) before it said %q:\n%s", p.cmd.Path, p.failure(), text, p.Output())
	case <-limit.C:
		return fmt.Errorf("%s did not say %q within %s:\n%s", p.cmd.Path, text, Limit, p.Output())
	}
}

func (p *Process) failure() error {
	if p.err == nil {
		return errors.New("without an error")
	}
	return p.err
}

// Output answers the last lines.
func (p *Process) Output() string { return p.out.String() }

// Wait waits for the program's end and answers what it ended with.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.exited:
		if p.err != nil {
			return fmt.Errorf("%w:\n%s", p.err, p.Output())
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s (process %d) has not ended: %w\n%s", p.cmd.Path, p.PID(), ctx.Err(), p.Output())
	}
}

// Kill ends the program with signal 9 and waits until it is gone. Killing one that has
// ended does nothing.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // by a handle: never another process with the same id
	<-p.exited
}

// Pause stops the program with SIGSTOP, and returns when it has stopped.
func (p *Process) Pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return p.awaitStopped()
}

// Resume lets a stopped program go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Signal sends any other signal.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// output keeps the last lines and tells of those that are waited for.
type output struct {
	hear func(string)
	over chan struct{} // closed when everything is read

	mu      sync.Mutex
	last    []string
	watches map[string]chan struct{}
}

// keptLines is how much of an output is kept for a failure's report.
const keptLines = 200

func newOutput(hear func(string)) *output {
	return &output{hear: hear, over: make(chan struct{}), watches: make(map[string]chan struct{})}
}

func (o *output) read(r io.Reader) {
	defer close(o.over)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		o.add(lines.Text())
		if o.hear != nil {
			o.hear(lines.Text())
		}
	}
	_, _ = io.Copy(io.Discard, r) // after a line that was too long
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.last) == keptLines {
		o.last = o.last[1:]
	}
	o.last = append(o.last, line)
	for text, found := range o.watches {
		if strings.Contains(line, text) {
			close(found)
			delete(o.watches, text)
		}
	}
}

// watch answers a channel that is closed by the first line with text, also one that
// was read before.
func (o *output) watch(text string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, ok := o.watches[text]
	if ok {
		return found
	}
	found = make(chan struct{})
	for _, line := range o.last {
		if strings.Contains(line, text) {
			close(found)
			return found
		}
	}
	o.watches[text] = found
	return found
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.last, "\n")
}

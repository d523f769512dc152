package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hasp-dev/hasp/integration/process"
)

// contest is a number of contenders for one key. On Redis each is a client of its own,
// except where it says otherwise.
// They are spread over some processes. Whoever has had the key comes back half a hold later:
// at once, it would often take the key again itself where a library keeps no line.
type contest struct {
	Library    string
	Addr, Key  string
	Contenders int
	Process    int           // which one this is
	Processes  int           // of how many
	Hold       time.Duration // for which everybody keeps the key
	Run        time.Duration // for which this goes on
}

// turn is one holding of the key. Times are of the clock that all processes share.
type turn struct {
	process, contender            int
	acquired, releasing, released time.Duration
}

// contestVariable says to a process that it is one of contenders.
const contestVariable = "HASP_BENCH_CONTEST"

// What contenders say on their standard output.
const (
	readyMark = "#ready"
	turnMark  = "#turn "
	renewMark = "#renewal "
)

// contend turns the process into contenders and never returns, if it was started for
// that.
func contend() {
	text, ok := os.LookupEnv(contestVariable)
	if !ok {
		return
	}
	var c contest
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.take()
	}
	if err != nil {
		fmt.Println("contenders:", err)
		os.Exit(1)
	}
	os.Exit(0) // what is left open ends with the process
}

// take is the life of a process of contenders.
func (c contest) take() error {
	lib, err := named(c.Library)
	if err != nil {
		return err
	}
	open := lib.open
	if lib.crowd != nil {
		open = lib.crowd
	}
	var mine []locker
	for i := c.Process; i < c.Contenders; i += c.Processes {
		if lib.crowd != nil && len(mine) > 0 {
			mine = append(mine, mine[0])
			continue
		}
		l, err := open(c.Addr)
		if err != nil {
			return err
		}
		if err := warm(l, fmt.Sprintf("warm:%s:%d", c.Key, i)); err != nil {
			return err
		}
		mine = append(mine, l)
	}
	fmt.Println(readyMark)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	turns, err := c.run(mine)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for _, t := range turns {
		fmt.Fprintln(out, turnMark, t.contender, int64(t.acquired), int64(t.releasing), int64(t.released))
	}
	for _, l := range mine {
		if o, ok := l.(*ours); ok && o.noted != nil {
			for _, at := range o.renewals() {
				fmt.Fprintln(out, renewMark, int64(at))
			}
		}
	}
	return out.Flush()
}

// patience is how long a library may take for what takes no time.
const patience = 10 * time.Second

// warm opens the connections of a client by a lock of its own.
func warm(l locker, key string) error {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	unlock, err := l.lock(ctx, key)
	if err != nil {
		return err
	}
	return unlock()
}

// run lets the contenders of this process have their turns.
func (c contest) run(mine []locker) ([]turn, error) {
	ctx, stop := context.WithTimeout(context.Background(), c.Run)
	defer stop()
	turns, errs := make([][]turn, len(mine)), make([]error, len(mine))
	var wg sync.WaitGroup
	for i, l := range mine {
		wg.Go(func() { turns[i], errs[i] = c.want(ctx, l, c.Process+i*c.Processes) })
	}
	wg.Wait()
	var all []turn
	for i := range mine {
		if errs[i] != nil {
			return nil, errs[i]
		}
		all = append(all, turns[i]...)
	}
	return all, nil
}

// want is one contender, until the run is over.
func (c contest) want(ctx context.Context, l locker, contender int) ([]turn, error) {
	var turns []turn
	for ctx.Err() == nil {
		unlock, err := l.lock(ctx, c.Key)
		if err != nil {
			return turns, unlessOver(ctx, err)
		}
		t := turn{process: c.Process, contender: contender, acquired: clock()}
		if c.Hold > 0 {
			time.Sleep(c.Hold)
		}
		t.releasing = clock()
		err = unlock()
		t.released = clock()
		if err != nil {
			return turns, unlessOver(ctx, err)
		}
		turns = append(turns, t)
		if c.Hold > 0 {
			time.Sleep(c.Hold / 2)
		}
	}
	return turns, nil
}

// unlessOver is an error that is not due to the end of the run.
func unlessOver(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// clock is the time since the machine started, the same in all processes.
func clock() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail
	return time.Duration(ts.Nano())
}

// crowd is a contest as seen by the process that started it.
type crowd struct {
	processes []*process.Process
	mu        sync.Mutex
	told      told
}

// told is what contenders say when it is over.
type told struct {
	turns    []turn
	renewals []time.Duration
}

// start starts the processes and waits until all of them are connected.
func (c contest) start() (*crowd, error) {
	to := &crowd{}
	for c.Process = range c.Processes {
		text, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), contestVariable+"="+string(text))
		number := c.Process
		p, err := process.Start(cmd, func(line string) { to.hear(number, line) })
		if err != nil {
			to.end()
			return nil, err
		}
		to.processes = append(to.processes, p)
	}
	for _, p := range to.processes {
		if err := p.Await(readyMark); err != nil {
			to.end()
			return nil, err
		}
	}
	return to, nil
}

func (to *crowd) hear(process int, line string) {
	to.mu.Lock()
	defer to.mu.Unlock()
	// What cannot be read is missing from the figures.
	if text, ok := strings.CutPrefix(line, turnMark); ok {
		t := turn{process: process}
		if _, err := fmt.Sscan(text, &t.contender, &t.acquired, &t.releasing, &t.released); err == nil {
			to.told.turns = append(to.told.turns, t)
		}
	}
	if text, ok := strings.CutPrefix(line, renewMark); ok {
		var at time.Duration
		if _, err := fmt.Sscan(text, &at); err == nil {
			to.told.renewals = append(to.told.renewals, at)
		}
	}
}

// begin gives the sign to all.
func (to *crowd) begin() error {
	for _, p := range to.processes {
		if _, err := p.In.Write([]byte("go\n")); err != nil {
			return err
		}
	}
	return nil
}

// all waits for the end and answers what all have told.
func (to *crowd) all(ctx context.Context) (told, error) {
	for _, p := range to.processes {
		if err := p.Wait(ctx); err != nil {
			return told{}, err
		}
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	return to.told, nil
}

// end kills what still runs.
func (to *crowd) end() {
	for _, p := range to.processes {
		p.Kill()
	}
}

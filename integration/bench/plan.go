package main

import (
	"fmt"
	"io"
	"time"
)

// plan says how much is measured.
type plan struct {
	rounds     int           // of everything that is compared
	pairRounds int           // of the closest comparison, a free lock with one goroutine
	window     time.Duration // for which one side is measured in a round
	longWindow time.Duration // the same for hand-overs, of which there are few in a second
	hold       time.Duration // of a lock that is handed over
	goroutines []int         // that use free locks
	waiters    []int         // behind a lock that is handed over
	beside     []int         // those of them for which other libraries are measured, too
	processes  int           // that contenders are spread over
	contenders int           // for one key, that hold it for no time
	fair       int           // of whom the least served is compared with the most served
	crowd      int           // waiters of whom only the commands are counted
	locks      int           // held at once
	queue      []int         // waiters behind a lock in a database
	idle       time.Duration // watched while nothing happens
	churn      time.Duration // of new and used locks, after a third of it to warm up
	partitions int           // holders that fall silent

	cores    cores
	versions map[string]string // of the servers that were started
	progress io.Writer
}

// full is what the table is made of.
func full() plan {
	return plan{
		rounds: 5, pairRounds: 9, window: 300 * time.Millisecond, longWindow: 800 * time.Millisecond, hold: 5 * time.Millisecond,
		goroutines: []int{2, 4, 64, 256}, waiters: []int{1, 8, 64, 256}, beside: []int{1, 64},
		processes: 4, contenders: 64, fair: 16, crowd: 1000, locks: 10_000, idle: 10 * time.Second, partitions: 100,
		queue: []int{1, 64}, churn: 3 * time.Minute, versions: make(map[string]string),
	}
}

// smoke is as little as shows that everything works.
func smoke() plan {
	return plan{
		rounds: 1, pairRounds: 1, window: 20 * time.Millisecond, longWindow: 300 * time.Millisecond, hold: time.Millisecond,
		goroutines: []int{4}, waiters: []int{1, 4}, beside: []int{1},
		processes: 2, contenders: 4, fair: 3, crowd: 8, locks: 100, idle: time.Second, partitions: 3,
		queue: []int{2}, churn: 3 * time.Second,
		cores: cores{unbound: true}, versions: make(map[string]string),
	}
}

// say tells whoever waits what is going on.
func (p plan) say(format string, args ...any) {
	if p.progress != nil {
		fmt.Fprintf(p.progress, format+"\n", args...)
	}
}

package main

import (
	"fmt"
	"math"
)

// row is one line of the table.
type row struct {
	id       string // of the reason why a goal is missed, see reasons.go
	what     string
	goal     string
	measured string
	ratio    string
	verdict  verdict
}

// verdict says whether a goal is met.
type verdict string

const (
	noGoal verdict = "–" // measured for comparison
	met    verdict = "met"
	missed verdict = "**missed**"
)

// goal is what a value is held against.
type goal struct {
	text  string
	bound float64
	least bool // the bound is the least and not the most
}

func atMost(bound float64, text string) goal  { return goal{text: text, bound: bound} }
func atLeast(bound float64, text string) goal { return goal{text: text, bound: bound, least: true} }

// judged is a row whose value is held against a goal. Not a number misses every goal.
func (g goal) judged(id, what string, value float64, measured, ratio string) row {
	v := missed
	if g.least && value >= g.bound || !g.least && value <= g.bound {
		v = met
	}
	return row{id: id, what: what, goal: g.text, measured: measured, ratio: ratio, verdict: v}
}

// compared is a row without a goal.
func compared(what, measured, ratio string) row {
	return row{what: what, measured: measured, ratio: ratio, verdict: noGoal}
}

// times writes a ratio.
func times(ratio float64, of string) string { return fmt.Sprintf("%.2f x %s", ratio, of) }

// micros writes a time that is given in microseconds.
func micros(us float64) string {
	switch {
	case math.IsNaN(us):
		return "none seen"
	case us >= 10_000 || us <= -10_000:
		return fmt.Sprintf("%.1f ms", us/1000)
	case us >= 100 || us <= -100:
		return fmt.Sprintf("%.0f µs", us)
	}
	return fmt.Sprintf("%.1f µs", us)
}

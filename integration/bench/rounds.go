package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
)

// figures are what one measurement has found, by name.
type figures map[string]float64

// side is one of those that are measured beside each other.
type side struct {
	name    string
	measure func(ctx context.Context) (figures, error)
}

// results are the figures of every round, by side.
type results map[string][]figures

// interleave lets every side measure once in each round. Every other round goes
// backwards, so that nobody always comes after the same neighbour.
func interleave(ctx context.Context, rounds int, sides ...side) (results, error) {
	r := make(results)
	for round := range rounds {
		order := slices.Clone(sides)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			f, err := s.again(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
			}
			r[s.name] = append(r[s.name], f)
		}
	}
	return r, nil
}

// again measures, and once more where that fails: some libraries miss a wake-up now and
// then on a busy machine, and that shall not end the run.
func (s side) again(ctx context.Context) (figures, error) {
	runtime.GC() // nobody pays for what another has left
	f, err := s.measure(ctx)
	if err == nil || ctx.Err() != nil {
		return f, err
	}
	f, again := s.measure(ctx)
	if again != nil {
		return nil, errors.Join(err, again)
	}
	return f, nil
}

// all answers one figure of every round.
func (r results) all(side, figure string) []float64 {
	var values []float64
	for _, f := range r[side] {
		v, ok := f[figure]
		if !ok {
			v = math.NaN()
		}
		values = append(values, v)
	}
	return values
}

// median is the middle one of a side's figures.
func (r results) median(side, figure string) float64 { return quantile(r.all(side, figure), 0.5) }

// ratio is the median of the ratios in which two sides' figures stood in each round.
func (r results) ratio(side, base, figure string) float64 {
	values, bases := r.all(side, figure), r.all(base, figure)
	for i := range values {
		values[i] /= bases[i]
	}
	return quantile(values, 0.5)
}

// quantile answers the value below which that part of all values lies.
func quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(part*float64(len(sorted)-1)+0.5)]
}

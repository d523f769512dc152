package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// stage is what a contest is watched on.
type stage struct {
	plan
	addr     string        // of the server
	joining  time.Duration // for which each contender is waited for, until all stand in line
	settling time.Duration // until the server has prepared what it does often
	look     func(ctx context.Context, lib library) (sight, error)
	key      int
}

// watch runs a contest and answers its figures. It looks from the time on when everybody
// stands in line.
func (g *stage) watch(ctx context.Context, lib library, contenders int, hold, window time.Duration) (figures, error) {
	g.key++
	warm, rest := window/4+g.settling+time.Duration(contenders)*g.joining, window/20
	c := contest{
		Library: lib.name, Addr: g.addr, Key: "contest:" + strconv.Itoa(g.key), Contenders: contenders,
		Processes: min(g.processes, contenders), Hold: hold, Run: warm + window + rest,
	}
	to, err := c.start()
	if err != nil {
		return nil, err
	}
	defer to.end()
	if err := to.begin(); err != nil {
		return nil, err
	}
	time.Sleep(warm)
	before, err := g.look(ctx, lib)
	if err != nil {
		return nil, err
	}
	time.Sleep(window)
	after, err := g.look(ctx, lib)
	if err != nil {
		return nil, err
	}
	all, err := to.all(ctx)
	if err != nil {
		return nil, err
	}
	turns := all.turns
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.acquired, b.acquired) })
	for i := 1; i < len(turns); i++ {
		if turns[i].acquired < turns[i-1].releasing {
			return nil, fmt.Errorf("two had the key at once: %+v, %+v", turns[i-1], turns[i])
		}
	}
	for _, at := range all.renewals {
		if at >= before.at && at < after.at {
			after.commands-- // it is counted apart
		}
	}
	return summary(turns, before, after, contenders)
}

// sight is what a look at the clock and the server has shown.
type sight struct {
	at       time.Duration
	commands int
	cpu      time.Duration
}

func (p plan) redisStage(s *redisServer) *stage {
	return &stage{plan: p, addr: s.Addr, joining: 4 * time.Millisecond, look: func(ctx context.Context, lib library) (sight, error) {
		u, err := s.used(ctx, lib.sends...)
		if err != nil {
			return sight{}, err
		}
		cpu, err := s.cpu(ctx)
		return sight{clock(), u.calls, cpu}, err
	}}
}

// summary is what happened between two looks.
func summary(turns []turn, from, to sight, contenders int) (figures, error) {
	served, inProcess := make([]float64, contenders), make(map[int]float64)
	var gaps, sinceCall []float64
	n := 0.0
	for i, t := range turns {
		if t.acquired < from.at || t.acquired >= to.at {
			continue
		}
		n++
		served[t.contender]++
		inProcess[t.process]++
		if i > 0 && turns[i-1].process != t.process {
			gaps = append(gaps, us(t.acquired-turns[i-1].released))
			sinceCall = append(sinceCall, us(t.acquired-turns[i-1].releasing))
		}
	}
	if n == 0 {
		return nil, errors.New("nobody has had a turn")
	}
	return figures{
		"passed on": float64(len(gaps)) / n,
		"p50":       quantile(gaps, 0.5), "p99": quantile(gaps, 0.99), "p50 since call": quantile(sinceCall, 0.5),
		"commands": float64(to.commands-from.commands) / n, "cpu": us(to.cpu-from.cpu) / n,
		"rate": n / (to.at - from.at).Seconds(), "fair": slices.Min(served) / slices.Max(served),
		"handed": float64(len(gaps)) / (to.at - from.at).Seconds(), "of 0": inProcess[0], "of 1": inProcess[1],
	}, nil
}

func us(d time.Duration) float64 { return float64(d) / 1e3 }

// sides are libraries in the same contest.
func (g *stage) sides(contenders int, hold, window time.Duration, names ...string) ([]side, error) {
	var sides []side
	for _, name := range names {
		lib, err := named(name)
		if err != nil {
			return nil, err
		}
		sides = append(sides, side{name, func(ctx context.Context) (figures, error) {
			return g.watch(ctx, lib, contenders, hold, window)
		}})
	}
	return sides, nil
}

// measureHandOver: somebody holds a key for 5 ms while the others wait. Only hand-overs to
// another process count.
func measureHandOver(ctx context.Context, p plan) ([]row, error) {
	var rows []row
	err := p.withRedis(func(s *redisServer) error {
		g := p.redisStage(s)
		trip, err := g.roundTrip(ctx)
		if err != nil {
			return err
		}
		rows = append(rows, compared("one raw round trip (SET NX PX), p50", micros(trip), ""))
		first, last := 0.0, 0.0
		for _, n := range p.waiters {
			names := []string{nameHasp}
			if slices.Contains(p.beside, n) {
				names = append(names, nameRueidislock, nameBsm)
			}
			sides, err := g.sides(n+1, p.hold, p.longWindow, names...)
			if err != nil {
				return err
			}
			r, err := interleave(ctx, p.rounds, sides...)
			if err != nil {
				return err
			}
			rows = append(rows, handOverRows(r, n, trip, names[1:])...)
			last = r.median(nameHasp, "p50 since call")
			if first == 0 {
				first = last
			}
		}
		what := fmt.Sprintf("release called -> next acquired, p50: %d waiters beside %d", p.waiters[len(p.waiters)-1], p.waiters[0])
		rows = append(rows, atMost(2, "flat within 2 x").judged("handover-flat", what, last/first, micros(last), times(last/first, micros(first))))
		commands, err := g.commands(ctx)
		rows = append(rows, commands)
		return err
	})
	return rows, err
}

func handOverRows(r results, waiters int, trip float64, others []string) []row {
	what := fmt.Sprintf("release returned -> next acquired, %d waiters: ", waiters)
	if waiters == 1 {
		what = "release returned -> next acquired, 1 waiter: "
	}
	id := "handover-" + strconv.Itoa(waiters)
	p50, p99, commands := r.median(nameHasp, "p50"), r.median(nameHasp, "p99"), r.median(nameHasp, "commands")
	rows := []row{
		atMost(50, "≤ 50 µs").judged(id+"-p50", what+"hasp, p50", p50, micros(p50), ""),
		atMost(trip+75, "≤ round trip + 75 µs").judged(id+"-p99", what+"hasp, p99", p99, micros(p99), ""),
		atMost(3, "≤ 3").judged(id+"-commands", fmt.Sprintf("client commands to a hand-over, %d waiting: hasp", waiters), commands,
			fmt.Sprintf("%.2f", commands), ""),
	}
	for _, name := range others {
		rows = append(rows, compared(what+name+", p50; p99", gapsOf(r, name), ""),
			compared(fmt.Sprintf("client commands to a hand-over, %d waiting: %s", waiters, name), fmt.Sprintf("%.2f", r.median(name, "commands")), ""))
	}
	return rows
}

// gapsOf writes the times of hand-overs to another process, and how many of the turns were
// such: where there is no line, most go to who is quickest.
func gapsOf(r results, name string) string {
	return fmt.Sprintf("%s; %s; %.0f %% of turns", micros(r.median(name, "p50")), micros(r.median(name, "p99")), 100*r.median(name, "passed on"))
}

// roundTrip answers how long one command takes by hand, in µs.
func (g *stage) roundTrip(ctx context.Context) (float64, error) {
	rdb := connect(g.addr)
	defer rdb.Close()
	r, err := interleave(ctx, g.rounds, side{nameRaw, func(ctx context.Context) (figures, error) {
		var took []float64
		for begin := time.Now(); time.Since(begin) < g.window/2; {
			from := time.Now()
			if err := rdb.SetNX(ctx, "trip", "0123456789abcdef", ttl).Err(); err != nil {
				return nil, err
			}
			took = append(took, us(time.Since(from)))
		}
		return figures{"p50": quantile(took, 0.5)}, nil
	}})
	if err != nil {
		return 0, err
	}
	return r.median(nameRaw, "p50"), nil
}

// commands counts what a big crowd sends.
func (g *stage) commands(ctx context.Context) (row, error) {
	sides, err := g.sides(g.crowd+1, 0, g.longWindow, nameHasp)
	if err != nil {
		return row{}, err
	}
	r, err := interleave(ctx, 1, sides...)
	if err != nil {
		return row{}, err
	}
	n := r.median(nameHasp, "commands")
	what := fmt.Sprintf("client commands to a hand-over, %d waiting: hasp", g.crowd)
	return atMost(3, "≤ 3").judged("handover-crowd-commands", what, n, fmt.Sprintf("%.2f", n), ""), nil
}

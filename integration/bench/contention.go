package main

import (
	"context"
	"fmt"
)

// measureContention: many want one key at once and hold it for no time.
func measureContention(ctx context.Context, p plan) ([]row, error) {
	var rows []row
	err := p.withRedis(func(s *redisServer) error {
		g := p.redisStage(s)
		names := []string{nameHasp, nameRueidislock, nameBsm}
		sides, err := g.sides(p.contenders, 0, p.longWindow, names...)
		if err != nil {
			return err
		}
		many, err := interleave(ctx, p.rounds, sides...)
		if err != nil {
			return err
		}
		if sides, err = g.sides(p.fair, 0, p.longWindow, names...); err != nil {
			return err
		}
		few, err := interleave(ctx, p.rounds, sides...)
		if err != nil {
			return err
		}
		rows = contentionRows(p, many, few)
		return nil
	})
	return rows, err
}

func contentionRows(p plan, many, few results) []row {
	what := fmt.Sprintf("hand-overs/s, %d contenders, no hold: ", p.contenders)
	rate := func(name string) string {
		return fmt.Sprintf("%.0f (%.0f µs server CPU each)", many.median(name, "rate"), many.median(name, "cpu"))
	}
	ratio := many.ratio(nameHasp, nameRueidislock, "rate")
	rows := []row{
		atLeast(6, "≥ 6 x rueidislock").judged("contention-rate", what+"hasp", ratio, rate(nameHasp), times(ratio, nameRueidislock)),
		compared(what+"rueidislock", rate(nameRueidislock), ""),
		compared(what+"bsm/redislock, which waits 10 ms between attempts", rate(nameBsm),
			times(many.ratio(nameBsm, nameRueidislock, "rate"), nameRueidislock)),
	}
	what = fmt.Sprintf("fairness, %d contenders: least / most served: ", p.fair)
	fair := few.median(nameHasp, "fair")
	rows = append(rows, atLeast(0.95, "≥ 0.95").judged("contention-fair", what+"hasp", fair, fmt.Sprintf("%.2f", fair), ""))
	for _, name := range []string{nameRueidislock, nameBsm} {
		rows = append(rows, compared(what+name, fmt.Sprintf("%.2f", few.median(name, "fair")), ""))
	}
	return rows
}

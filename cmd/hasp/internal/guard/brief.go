package guard

import (
	"fmt"
	"strconv"
)

// brief is what the guard's arguments say.
type brief struct {
	orders, reports, hold int // descriptors; -1: none
	term, kill            Instant
	foreground            bool
	path                  string
	args                  []string
}

const briefNumbers = 6

func (b brief) arguments() []string {
	foreground := int64(0)
	if b.foreground {
		foreground = 1
	}
	var words []string
	for _, n := range [briefNumbers]int64{int64(b.orders), int64(b.reports), int64(b.hold), int64(b.term), int64(b.kill), foreground} {
		words = append(words, strconv.FormatInt(n, 10))
	}
	return append(append(words, b.path), b.args...)
}

func parseBrief(words []string) (brief, error) {
	if len(words) < briefNumbers+2 {
		return brief{}, fmt.Errorf("%d arguments, want at least %d: hasp starts its guards by itself", len(words), briefNumbers+2)
	}
	var numbers [briefNumbers]int64
	for i := range numbers {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			return brief{}, fmt.Errorf("argument %d: %w", i, err)
		}
		numbers[i] = n
	}
	return brief{
		orders: int(numbers[0]), reports: int(numbers[1]), hold: int(numbers[2]),
		term: Instant(numbers[3]), kill: Instant(numbers[4]), foreground: numbers[5] == 1,
		path: words[briefNumbers], args: words[briefNumbers+1:],
	}, nil
}

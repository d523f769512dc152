package guard

import (
	"fmt"
	"strconv"
	"strings"
)

// orderKind says what hasp tells the guard.
type orderKind string

const (
	orderTrust  orderKind = "trust"  // numbers: Term, Kill
	orderLost   orderKind = "lost"   // number: Kill
	orderSignal orderKind = "signal" // number: the signal
)

// order is one line on the pipe from hasp to the guard.
type order struct {
	kind    orderKind
	numbers [2]int64
}

func (o order) String() string {
	return fmt.Sprintf("%s %d %d\n", o.kind, o.numbers[0], o.numbers[1])
}

func parseOrder(line string) (order, error) {
	kind, numbers, err := parseFrame(line, 2)
	if err != nil {
		return order{}, err
	}
	return order{kind: orderKind(kind), numbers: [2]int64(numbers)}, nil
}

func (r Report) String() string { return fmt.Sprintf("%s %d\n", r.Kind, r.Number) }

func parseReport(line string) (Report, error) {
	kind, numbers, err := parseFrame(line, 1)
	if err != nil {
		return Report{}, err
	}
	return Report{Kind: ReportKind(kind), Number: int(numbers[0])}, nil
}

// parseFrame reads a word and count numbers, separated by single spaces.
func parseFrame(line string, count int) (string, []int64, error) {
	words := strings.Split(line, " ")
	if len(words) != count+1 {
		return "", nil, fmt.Errorf("frame %q: want a word and %d numbers", line, count)
	}
	numbers := make([]int64, count)
	for i, word := range words[1:] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return "", nil, fmt.Errorf("frame %q: %w", line, err)
		}
		numbers[i] = n
	}
	return words[0], numbers, nil
}

package schedule

import "time"

// Next answers the first n ticks of a specification after a time.
func Next(text, zone string, dst DST, after time.Time, n int) ([]time.Time, error) {
	s, err := parseSpec(text, zone, dst)
	if err != nil {
		return nil, err
	}
	var all []time.Time
	for range n {
		if after = s.next(after); after.IsZero() {
			break
		}
		all = append(all, after)
	}
	return all, nil
}

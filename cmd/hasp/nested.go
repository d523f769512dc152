//go:build unix

package main

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/hasp-dev/hasp"
)

// refuseNested refuses to wait for a key that is held by the very command that started
// this hasp: neither would ever end. The token in the environment tells whether it is.
// It sees one level.
func (r *runner) refuseNested(ctx context.Context, store *opened) error {
	token, err := strconv.ParseInt(r.env.get("HASP_TOKEN"), 10, 64)
	if err != nil || r.job.lock.Wait == hasp.NoWait {
		return nil
	}
	var outer []string
	if all := r.env.get("HASP_KEYS"); all == "" || json.Unmarshal([]byte(all), &outer) != nil {
		outer = []string{r.env.get("HASP_KEY")}
	}
	ctx, cancel := context.WithTimeout(ctx, nestedLimit)
	defer cancel()
	for _, key := range r.job.keys {
		if !slices.Contains(outer, key) {
			continue
		}
		l, err := store.Inspect(ctx, key)
		if err != nil {
			return nil // whatever it is, the join will say so
		}
		if slices.ContainsFunc(l.Holders, func(s hasp.Standing) bool { return s.Token == token && !r.fits(s) }) {
			return usagef("%s is held for the command that this hasp was started by, and would be waited for in vain; -n does not wait", printable(key))
		}
	}
	return nil
}

// fits says whether the job may hold beside a holder.
func (r *runner) fits(s hasp.Standing) bool {
	return s.Weight < s.Capacity && (r.job.shared || r.job.permits.of > 0)
}

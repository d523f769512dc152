package driver

import "fmt"

// Bounds that every store keeps to.
const (
	MaxKeys = 64   // of one claim
	MaxName = 128  // bytes of Claim.Name
	MaxPage = 1000 // lines to a Page
)

// ValidateKeys wants 1 to MaxKeys keys, none empty, sorted and distinct. Like every
// check here it asks what is true of all stores, is for the drivers to call before they
// send anything, and answers an error that wraps ErrInvalid.
func ValidateKeys(keys []string) error {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return invalid("a claim has 1 to %d keys, not %d", MaxKeys, len(keys))
	}
	for i, key := range keys {
		if key == "" {
			return invalid("a key is empty")
		}
		if i > 0 && key <= keys[i-1] {
			return invalid("keys are not sorted and distinct: %q after %q", key, keys[i-1])
		}
	}
	return nil
}

// Validate says what of the Join cannot be right on any store.
func (j *Join) Validate() error {
	if err := ValidateKeys(j.Keys); err != nil {
		return err
	}
	if j.Weight < 1 || j.Weight > j.Capacity {
		return invalid("weight %d is not from 1 to the capacity %d", j.Weight, j.Capacity)
	}
	if len(j.Name) > MaxName {
		return invalid("the name has %d bytes, more than %d", len(j.Name), MaxName)
	}
	if j.MaxLine < 0 {
		return invalid("MaxLine %d is negative", j.MaxLine)
	}
	if j.Leaving != nil {
		if err := ValidateKeys(j.Leaving.Keys); err != nil {
			return fmt.Errorf("the claim that leaves: %w", err)
		}
	}
	if mayWait := !j.Try && j.Resume == nil; mayWait && j.Life.Wait == 0 {
		return invalid("a claim that may wait needs a life for it")
	}
	return j.Life.validate()
}

// Validate says what of the Renewal cannot be right on any store.
func (r *Renewal) Validate() error {
	if err := ValidateKeys(r.Keys); err != nil {
		return err
	}
	switch r.Mode {
	case Extend, Fix:
		return r.Life.validate()
	case Drop:
		return nil
	}
	return invalid("no such mode of renewal: %v", r.Mode)
}

func (l Life) validate() error {
	if l.Hold <= 0 || l.Grace < 0 || l.Wait < 0 {
		return invalid("a life holds for more than 0, and nothing of it is negative: hold %v, grace %v, wait %v", l.Hold, l.Grace, l.Wait)
	}
	return nil
}

// Validate says what of the Query cannot be right on any store.
func (q *Query) Validate() error {
	if q.Limit < 0 {
		return invalid("Limit %d is negative", q.Limit)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

package fence

import (
	"errors"
	"strconv"

	"github.com/hasp-dev/hasp"
)

// Token answers the token of a lease that fences. It refuses, as a *hasp.Error,
//
//   - a lease that is lost or released, with its own reason,
//   - a shared one with hasp.ErrInvalid: tokens of readers and permits order, but their
//     holders do not exclude each other, so a larger token makes no other one stale,
//   - one of a store without tokens with hasp.ErrUnsupported.
//
// A lease whose client is closing still counts: it is renewed until its owner is done.
func Token(lease *hasp.Lease) (int64, error) {
	if lease == nil {
		return 0, invalidf("the lease is nil")
	}
	fail := func(err error) (int64, error) {
		return 0, &hasp.Error{Op: "fence", Key: lease.Keys()[0], Err: err}
	}
	if err := lease.Err(); err != nil && !errors.Is(err, hasp.ErrClosed) {
		return fail(err)
	}
	if lease.Shared() {
		return fail(&unfitError{class: hasp.ErrInvalid, why: "the lease is shared (a reader, or permits), " +
			"so its token orders but does not fence: to write, hold a Mutex, or the Lock of an RWMutex"})
	}
	token := lease.Token()
	if token == 0 {
		return fail(&unfitError{class: hasp.ErrUnsupported, why: "the store gives no fencing tokens, " +
			"so a late write cannot be told from a timely one: use a store that gives them (docs/stores.md)"})
	}
	return token, nil
}

// unfitError says why the token of a lease does not fence.
type unfitError struct {
	why   string
	class error
}

func (e *unfitError) Error() string { return e.why }

func (e *unfitError) Unwrap() error { return e.class }

// ParseToken reads a token as Header, JSON and HASP_TOKEN carry it: digits, nothing else.
func ParseToken(text string) (int64, error) {
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil || token <= 0 || strconv.FormatInt(token, 10) != text {
		return 0, invalidf("%.40q is no fencing token, which is a decimal number above 0", text)
	}
	return token, nil
}

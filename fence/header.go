package fence

import (
	"net/http"
	"strconv"

	"github.com/hasp-dev/hasp"
)

// Header is the name of the HTTP header that carries a token, as a decimal number.
const Header = "Fencing-Token"

// SetHeader puts the lease's token into the header of an outgoing request. It refuses the
// leases that [Token] refuses, and sets nothing then.
func SetHeader(h http.Header, lease *hasp.Lease) error {
	token, err := Token(lease)
	if err != nil {
		return err
	}
	h.Set(Header, strconv.FormatInt(token, 10))
	return nil
}

// ParseHeader reads the token of a request that came in: ErrNoToken where there is none,
// hasp.ErrInvalid where it is no token, or there are two.
func ParseHeader(h http.Header) (int64, error) {
	switch values := h.Values(Header); len(values) {
	case 0:
		return 0, ErrNoToken
	case 1:
		return ParseToken(values[0])
	default:
		return 0, invalidf("the request carries %d fencing tokens, want one", len(values))
	}
}

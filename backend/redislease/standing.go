package redislease

import (
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Bits of an answer's flags.
const (
	flagMore = 1 << iota
	flagBehind
	flagRevoked
	flagUnheard // the server refused a signal of this step
)

// errUnheard is told once: the others look again by themselves.
var errUnheard = errors.New("the server refuses what this user publishes on channels that begin with hasp: (its ACL LOG says what)")

// standing reads a script's answer.
func (d *Driver) standing(reply any) (driver.Standing, error) {
	list, ok := reply.([]any)
	if err, failed := reply.(error); failed {
		return driver.Standing{}, classify(err)
	}
	if !ok || len(list) != 8 {
		return driver.Standing{}, fmt.Errorf("redislease: %w: an answer of the script was not understood", driver.ErrUnavailable)
	}
	var n [8]int64
	for i, v := range list {
		n[i], _ = v.(int64)
	}
	holder, _ := list[6].(string)
	if n[4]&flagUnheard != 0 {
		d.warn("signals", deaf(errUnheard))
	}
	return driver.Standing{
		State: driver.State(n[0]), Number: n[1],
		Life: ms(n[2]), LookAgain: ms(n[3]),
		More: n[4]&flagMore != 0, Behind: n[4]&flagBehind != 0, Revoked: n[4]&flagRevoked != 0,
		Ahead: int(n[5]), Holder: holder, ExpiresIn: ms(n[7]),
	}, nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

package drivertest

import (
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// malformed says what no answer may look like; named is the number its call named.
func malformed(s driver.Standing, named int64) string {
	lives := s.State == driver.Holding || s.State == driver.Waiting
	switch {
	case s.State < driver.Holding || s.State > driver.Left:
		return "an unknown state"
	case lives && s.Number <= 0:
		return "no number"
	case lives && named != 0 && s.Number != named:
		return "the number of another stay"
	case s.Number >= 1<<57:
		return "a number whose token does not fit 63 bits"
	case s.State == driver.Refused && s.Number != 0:
		return "a number, though refused"
	case s.State == driver.Gone && s.Number != named:
		return fmt.Sprintf("not the number %d that was named", named)
	case lives && s.Life <= 0:
		return "no life"
	case s.State == driver.Waiting && s.LookAgain <= 0:
		return "no LookAgain"
	case s.Revoked && s.State != driver.Gone:
		return "revoked, but not gone"
	case s.Ahead < 0 || s.ExpiresIn < 0:
		return "a negative Ahead or ExpiresIn"
	}
	return ""
}

// told is an answer for the history.
func told(s driver.Standing, err error) string {
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%v #%d life %v", s.State, s.Number, s.Life.Round(time.Millisecond))
	if s.LookAgain > 0 {
		text += fmt.Sprintf(" again %v", s.LookAgain.Round(time.Millisecond))
	}
	if s.Ahead > 0 || s.Holder != "" {
		text += fmt.Sprintf(" ahead %d holder %q for %v", s.Ahead, s.Holder, s.ExpiresIn.Round(time.Millisecond))
	}
	if s.More {
		text += " more"
	}
	if s.Behind {
		text += " behind"
	}
	if s.Revoked {
		text += " revoked"
	}
	return text
}

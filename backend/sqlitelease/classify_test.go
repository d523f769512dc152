package sqlitelease_test

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/backend/sqllease"
)

// The ways in which drivers tell SQLite's result code.
type (
	methodError struct{ code int } // as modernc.org/sqlite
	fieldNo     int
	fieldError  struct{ Code, ExtendedCode fieldNo } // as mattn/go-sqlite3
	extendedNo  uint16
	typedCode   uint8
	typedError  struct{ code uint16 } // as ncruces/go-sqlite3
	bareError   uint16                // the same
)

func (e *methodError) Error() string { return "an error" }
func (e *methodError) Code() int     { return e.code }

func (e bareError) Error() string { return "an error" }

func (e fieldError) Error() string { return "an error" }

func (e *typedError) Error() string            { return "an error" }
func (e *typedError) Code() typedCode          { return typedCode(e.code) }
func (e *typedError) ExtendedCode() extendedNo { return extendedNo(e.code) }

func TestErrorsAreClassifiedByResultCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]sqllease.FaultKind{
		1: sqllease.Unclear, 3: sqllease.Refused, 4: sqllease.Unavailable, 5: sqllease.Busy, 6: sqllease.Busy,
		7: sqllease.Unavailable, 8: sqllease.Refused, 9: sqllease.Unavailable, 10: sqllease.Unavailable,
		11: sqllease.Refused, 13: sqllease.Refused, 14: sqllease.Refused, 15: sqllease.Busy, 17: sqllease.Busy,
		19: sqllease.Unavailable, 22: sqllease.Refused, 23: sqllease.Refused, 26: sqllease.Refused,
		5 | 1<<8: sqllease.Busy, 5 | 2<<8: sqllease.Busy, 8 | 4<<8: sqllease.Refused, 10 | 13<<8: sqllease.Unavailable,
		11 | 1<<8: sqllease.Refused, 14 | 2<<8: sqllease.Refused,
	} {
		for _, err := range []error{
			&methodError{code},
			fieldError{Code: fieldNo(code & 0xff), ExtendedCode: fieldNo(code)},
			&typedError{uint16(code)},
			bareError(code),
		} {
			for _, err := range []error{err, fmt.Errorf("wrapped: %w", err), errors.Join(errors.New("another"), err)} {
				if got := sqlitelease.Classify(err).Kind; got != want {
					t.Errorf("%T with code %d is %d, want %d", err, code, got, want)
				}
			}
		}
	}
	for _, err := range []error{errors.New("database is locked"), sqldriver.ErrBadConn} {
		if got := sqlitelease.Classify(err).Kind; got != sqllease.Unavailable {
			t.Errorf("%v is %d, want unavailable", err, got)
		}
	}
}

package mysqllease_test

import (
	"crypto/tls"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/backend/sqllease"
)

func TestErrorsAreClassifiedByNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint16]sqllease.FaultKind{
		1205: sqllease.Busy, 3572: sqllease.Busy, 1213: sqllease.Busy, 3101: sqllease.Busy, 1020: sqllease.Busy,
		1969: sqllease.Busy, 3024: sqllease.Busy, 1317: sqllease.Busy, 1223: sqllease.Busy, 1192: sqllease.Busy,
		1290: sqllease.Refused, 1792: sqllease.Refused, 1836: sqllease.Refused, 1874: sqllease.Refused,
		1044: sqllease.Refused, 1045: sqllease.Refused, 1142: sqllease.Refused, 1227: sqllease.Refused,
		1130: sqllease.Refused, 1820: sqllease.Refused, 1046: sqllease.Refused, 1049: sqllease.Refused,
		1114: sqllease.Refused, 1041: sqllease.Refused, 1406: sqllease.Refused,
		1146: sqllease.Unclear, 1054: sqllease.Unclear, 1193: sqllease.Unclear,
		1040: sqllease.Unavailable, 1203: sqllease.Unavailable, 1226: sqllease.Unavailable, 1047: sqllease.Unavailable,
		1053: sqllease.Broken, 1927: sqllease.Broken, 4031: sqllease.Broken,
		1064: sqllease.Unavailable, 9999: sqllease.Unavailable,
	} {
		err := error(&mysql.MySQLError{Number: number, Message: "read-only, denied, locked"}) // the text says nothing
		for _, err := range []error{err, fmt.Errorf("wrapped: %w", err), errors.Join(errors.New("another"), err)} {
			if got := mysqllease.Classify(err).Kind; got != want {
				t.Errorf("error %d is %d, want %d", number, got, want)
			}
		}
	}
	for _, err := range []error{mysql.ErrNoTLS, mysql.ErrUnknownPlugin, &tls.CertificateVerificationError{Err: errors.New("unknown authority")}} {
		if got := mysqllease.Classify(fmt.Errorf("wrapped: %w", err)).Kind; got != sqllease.Refused {
			t.Errorf("%v is %d, want refused", err, got)
		}
	}
	for _, err := range []error{sqldriver.ErrBadConn, mysql.ErrInvalidConn, errors.New("read-only")} {
		if got := mysqllease.Classify(err).Kind; got != sqllease.Broken {
			t.Errorf("%v is %d, want broken", err, got)
		}
	}
}

func TestNoValueEndsItsLiteral(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		"-9223372036854775808": int64(-1 << 63),
		"7":                    7,
		"255":                  uint8(255),
		"X'273b202d2d20'":      "'; -- ",
		"X'5c270022'":          []byte{'\\', '\'', 0, '"'},
		"X''":                  []byte{},
		"X'61', X'62'":         [][]byte{{'a'}, {'b'}},
		"X'f09f9492ff'":        "\U0001F512\xff",
	} {
		if got := mysqllease.Literal(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

package pglease_test

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hasp-dev/hasp/backend/pglease"
	"github.com/hasp-dev/hasp/backend/sqllease"
)

func TestErrorsAreToldApartByTheirCodes(t *testing.T) {
	t.Parallel()
	code := func(c string) error { return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: c, Message: "text"}) }
	for want, all := range map[sqllease.FaultKind][]error{
		sqllease.Busy:        {code("40001"), code("40P01"), code("55P03"), code("57014"), code("57P01"), code("57P05"), io.EOF, io.ErrUnexpectedEOF, sqldriver.ErrBadConn},
		sqllease.Refused:     {code("25006"), code("42501"), code("28P01"), code("28000"), code("3D000"), code("3F000"), code("53100"), code("53200"), code("HS001")},
		sqllease.Unavailable: {code("53300"), code("57P02"), code("57P03"), code("08006"), code("XX000"), code("58030"), code("99999"), code(""), &pgconn.ConnectError{}},
		sqllease.Unclear:     {code("42P01"), code("42883"), code("42703"), code("22P02"), code("25001")},
	} {
		for _, err := range all {
			if f := pglease.Classify(err); f.Kind != want {
				t.Errorf("%v is %v (%s), want %v", err, f.Kind, f.Text, want)
			}
		}
	}
	if f := pglease.Classify(errors.Join(errors.New("first"), code("25006"))); f.Kind != sqllease.Refused || f.Text == "" {
		t.Errorf("a joined error is %+v", f)
	}
}

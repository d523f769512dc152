package pglease

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// sqlStater is what errors of PostgreSQL's drivers have in common (pgx, lib/pq).
type sqlStater interface{ SQLState() string }

// Conditions of PostgreSQL, see its manual, appendix A, and one of hasp's own.
const (
	codeLayout   = "HS001" // the tables belong to a newer release
	codeKnown    = "HS002" // they do, and this release may use them as they are
	classSyntax  = "42"    // also: no such table, function, column
	classOutage  = "57"
	classNoSpace = "53"
)

// classify says what an error means, by the server's code where there is one.
func classify(err error) sqllease.Fault {
	if errors.Is(err, errFull) {
		return busy("no connection of the pool is free: raise its limit, or look for what keeps them")
	}
	if errors.Is(err, errParting) {
		return busy("the claim is leaving its session")
	}
	if errors.Is(err, errMissed) {
		return unavailable("")
	}
	if errors.Is(err, errColumns) {
		return sqllease.Fault{Kind: sqllease.Unclear}
	}
	var state sqlStater
	if errors.As(err, &state) {
		return byCode(state.SQLState())
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return unavailable("")
	}
	// A connection broke under way. Steps can be repeated, and the next connection tells
	// whether the server is there.
	return busy("the connection to the server broke")
}

func byCode(code string) sqllease.Fault {
	if f, ok := faults()[code]; ok {
		return f
	}
	if len(code) != 5 {
		return unavailable("")
	}
	switch code[:2] {
	case "40":
		return busy("another transaction was in the way, time and again")
	case classSyntax, "22":
		return sqllease.Fault{Kind: sqllease.Unclear}
	case "28":
		return refused("the server does not let this user in: check user, password and pg_hba.conf")
	case classNoSpace:
		return refused("the server is short of disk, memory or another resource")
	case classOutage, "08":
		return unavailable("the server ended the connection or is not ready")
	case "58", "XX":
		return unavailable("the server has an internal error, see its log")
	}
	return unavailable("")
}

func faults() map[string]sqllease.Fault {
	return map[string]sqllease.Fault{
		codeLayout: refused("the hasp tables belong to a newer release, which this one must not touch: upgrade hasp here"),
		"25006":    refused("the server or the user's session is read-only: connect to the primary, and check default_transaction_read_only"),
		"42501":    refused("a right is missing: GRANT SELECT, INSERT, UPDATE, DELETE on hasp's tables and EXECUTE on its functions"),
		"3D000":    refused("no such database: check the address"),
		"3F000":    refused("no such schema: CREATE SCHEMA it, or check Options.Schema"),
		"55P03":    busy("another transaction has locked what a step needs: a guard of the claim, or something that lock_timeout ended the wait for"),
		"57014":    busy("statement_timeout ended a step, or somebody cancelled it: raise it for hasp's user"),
		"55006":    busy("an object is in use"),
		"25001":    {Kind: sqllease.Unclear},
		"25P03":    unavailable("idle_in_transaction_session_timeout ended the connection"),
		"53300":    unavailable("the server has too many connections: raise max_connections or lower the pools' limits"),
		"57P01":    busy("the server ended the connection: an administrator's command"),
		"57P02":    unavailable("the server ended the connection: another process of it crashed"),
		"57P03":    unavailable("the server is starting or shutting down"),
		"57P05":    busy("idle_session_timeout ended the connection"),
	}
}

func refused(text string) sqllease.Fault { return sqllease.Fault{Kind: sqllease.Refused, Text: text} }
func busy(text string) sqllease.Fault    { return sqllease.Fault{Kind: sqllease.Busy, Text: text} }
func unavailable(text string) sqllease.Fault {
	return sqllease.Fault{Kind: sqllease.Unavailable, Text: text}
}

// unknown says whether a step that failed so may have been done all the same.
func unknown(err error) bool {
	var state sqlStater
	if errors.As(err, &state) {
		code := state.SQLState()
		return len(code) == 5 && (code[:2] == classOutage || code[:2] == "08")
	}
	var connect *pgconn.ConnectError
	return !errors.As(err, &connect) && !pgconn.SafeToRetry(err)
}

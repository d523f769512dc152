package mysqllease

import (
	"crypto/tls"
	"errors"

	"github.com/go-sql-driver/mysql"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// classify says what an error of the MySQL driver means. It goes by the server's error
// number; the text of an error is never looked at.
func classify(err error) sqllease.Fault {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return misfit(err)
	}
	for _, class := range [](func(uint16) (sqllease.Fault, bool)){contention, refusal, outage} {
		if f, ok := class(e.Number); ok {
			return f
		}
	}
	return sqllease.Fault{Kind: sqllease.Unavailable}
}

// misfit tells a handle and a server that will never come together from a connection that
// broke.
func misfit(err error) sqllease.Fault {
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		return sqllease.Fault{Kind: sqllease.Refused, Text: "the server's certificate is not trusted: check the handle's TLS settings"}
	}
	for _, never := range []error{
		mysql.ErrNoTLS, mysql.ErrCleartextPassword, mysql.ErrNativePassword, mysql.ErrOldPassword, mysql.ErrUnknownPlugin, mysql.ErrOldProtocol,
	} {
		if errors.Is(err, never) {
			return sqllease.Fault{Kind: sqllease.Refused, Text: "the handle's settings for logging in do not fit the server's: check the DSN"}
		}
	}
	return sqllease.Fault{Kind: sqllease.Broken}
}

// contention are errors after which the same step may well succeed.
func contention(number uint16) (sqllease.Fault, bool) {
	busy := func(text string) (sqllease.Fault, bool) {
		return sqllease.Fault{Kind: sqllease.Busy, Text: text}, true
	}
	switch number {
	case 1205: // ER_LOCK_WAIT_TIMEOUT; MariaDB says so to NOWAIT, too
		return busy("another transaction has locked the line or the claim")
	case 3572: // ER_LOCK_NOWAIT
		return busy("another transaction has locked the claim")
	case 1213, 3101, 1020: // ER_LOCK_DEADLOCK, ER_TRANSACTION_ROLLBACK_DURING_COMMIT, ER_CHECKREAD
		return busy("the database rolls the step back in favour of others")
	case 1969, 3024: // ER_STATEMENT_TIMEOUT, ER_QUERY_TIMEOUT
		return busy("max_statement_time or max_execution_time ends the step before it is done: raise it for hasp's user")
	case 1317: // ER_QUERY_INTERRUPTED
		return busy("somebody kills the statements of the step")
	case 1223, 1192: // ER_CANT_UPDATE_WITH_READLOCK, ER_LOCK_OR_ACTIVE_TRANSACTION
		return busy("the server or the table is locked against writes, as by a backup")
	}
	return sqllease.Fault{}, false
}

// refusal are errors that stay until somebody does something about them.
func refusal(number uint16) (sqllease.Fault, bool) {
	refused := func(text string) (sqllease.Fault, bool) {
		return sqllease.Fault{Kind: sqllease.Refused, Text: text}, true
	}
	switch number {
	case 1290, 1792, 1836, 1874, 1036: // options, transactions, modes and tables that forbid writes
		return refused("the server or the transaction is read-only: connect to the primary, with write access")
	case 1044, 1045, 1142, 1143, 1227, 1698: // ER_DBACCESS_DENIED, ER_ACCESS_DENIED, ER_TABLEACCESS_DENIED …
		return refused("no right to do that: hasp's user needs SELECT, INSERT, UPDATE and DELETE on its tables, and CREATE to migrate")
	case 1129, 1130, 1251, 1820, 1862, 3118, 3159: // hosts and accounts that may not connect
		return refused("the server does not let this account or host in")
	case 1046:
		return refused("no database is chosen: name one in the DSN or in Options.Database")
	case 1049:
		return refused("there is no such database: create it, or check the DSN and Options.Database")
	case 1021, 1114, 1030: // ER_DISK_FULL, ER_RECORD_FILE_FULL, ER_GET_ERRNO
		return refused("the disk or the table is full, or the storage engine failed: see the server's log")
	case 1037, 1038, 1041, 1135: // out of memory, of one kind or another
		return refused("the server is out of memory")
	case 1406:
		return refused("a key or a name is longer than its column")
	case 1146, 1054, 1193: // ER_NO_SUCH_TABLE, ER_BAD_FIELD, ER_UNKNOWN_SYSTEM_VARIABLE
		return sqllease.Fault{Kind: sqllease.Unclear}, true
	}
	return sqllease.Fault{}, false
}

// outage are errors of a server that cannot serve at the moment.
func outage(number uint16) (sqllease.Fault, bool) {
	switch number {
	case 1040, 1203, 1226: // ER_CON_COUNT, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED
		return sqllease.Fault{Text: "the server takes no more connections of this user: raise max_connections or the user's limit, or make the pools smaller"}, true
	case 1047: // ER_UNKNOWN_COM: Galera's word for it
		return sqllease.Fault{Text: "the node is not ready: it is cut off from its cluster or still joining it"}, true
	case 1053, 1077, 1079, 1927, 4031: // ER_SERVER_SHUTDOWN …, ER_CONNECTION_KILLED, ER_CLIENT_INTERACTION_TIMEOUT
		return sqllease.Fault{Kind: sqllease.Broken, Text: "the server has ended the connection"}, true
	}
	return sqllease.Fault{}, false
}

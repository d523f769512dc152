package sqlitelease

import (
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// Primary result codes of SQLite, see https://www.sqlite.org/rescode.html.
const (
	codeError    = 1
	codePerm     = 3
	codeBusy     = 5
	codeLocked   = 6
	codeReadOnly = 8
	codeIOErr    = 10
	codeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeProtocol = 15
	codeSchema   = 17
	codeNoLFS    = 22
	codeAuth     = 23
	codeNotADB   = 26
)

// classify says what an error of a SQLite driver means. It goes by the result code.
func classify(err error) sqllease.Fault {
	code, ok := resultCode(err)
	if !ok || errors.Is(err, driver.ErrBadConn) {
		return sqllease.Fault{Kind: sqllease.Unavailable}
	}
	refused := func(text string) sqllease.Fault { return sqllease.Fault{Kind: sqllease.Refused, Text: text} }
	switch code & 0xff { // the rest is the extended code
	case codeBusy, codeLocked, codeProtocol, codeSchema:
		return sqllease.Fault{Kind: sqllease.Busy, Text: "the database is locked by another transaction"}
	case codeReadOnly:
		return refused("the database is read-only: open it for writing and check the rights on the file and its folder")
	case codePerm, codeAuth:
		return refused("no right to do that: check the rights on the database file and its folder")
	case codeCorrupt:
		return refused("the database file is corrupt: restore it from a backup, or delete it if it holds nothing but locks")
	case codeNotADB:
		return refused("the file is not a SQLite database, or is encrypted: check the path")
	case codeFull:
		return refused("the disk or the database is full: make room, or raise max_page_count")
	case codeCantOpen:
		return refused("the database file cannot be opened: check that its folder exists and the rights on both")
	case codeNoLFS:
		return refused("the file system cannot hold so large a file")
	case codeIOErr:
		return sqllease.Fault{Kind: sqllease.Unavailable, Text: "the disk failed to read or write, or is full"}
	case codeError:
		return sqllease.Fault{Kind: sqllease.Unclear}
	}
	return sqllease.Fault{Kind: sqllease.Unavailable}
}

// resultCode finds SQLite's result code in an error without knowing the driver: a
// method Code() int (modernc.org/sqlite), a method ExtendedCode, or an error that is the
// code itself (ncruces/go-sqlite3), or a field ExtendedCode (mattn/go-sqlite3).
func resultCode(err error) (int, bool) {
	for err != nil {
		if c, ok := err.(interface{ Code() int }); ok {
			return c.Code(), true
		}
		if code, ok := extendedCode(reflect.ValueOf(err)); ok {
			return code, true
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				if code, ok := resultCode(e); ok {
					return code, true
				}
			}
			return 0, false
		}
		err = errors.Unwrap(err)
	}
	return 0, false
}

func extendedCode(v reflect.Value) (int, bool) {
	if m := v.MethodByName("ExtendedCode"); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
		return integer(m.Call(nil)[0])
	}
	if v.CanUint() && strings.Contains(v.Type().PkgPath(), "sqlite") {
		return integer(v)
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return 0, false
	}
	if f := v.FieldByName("ExtendedCode"); f.IsValid() {
		return integer(f)
	}
	return 0, false
}

func integer(v reflect.Value) (int, bool) {
	switch {
	case v.CanInt():
		return int(v.Int()), true
	case v.CanUint():
		return int(v.Uint() & 0xffff), true
	}
	return 0, false
}

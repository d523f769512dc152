package mysqllease

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// literal writes a value into the text of a statement. Numbers are digits and everything
// else is X'…', so no value can end the literal it is in, whatever the connection's
// character set and sql_mode are.
func literal(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case int:
		return strconv.Itoa(v)
	case uint8:
		return strconv.Itoa(int(v))
	case string:
		return "X'" + hex.EncodeToString([]byte(v)) + "'"
	case []byte:
		return "X'" + hex.EncodeToString(v) + "'"
	case [][]byte:
		return listed(v, func(b []byte) string { return literal(b) })
	case sqllease.Selected:
		return "SELECT " + strings.Join(strings.Split(literal([][]byte(v)), ", "), " AS v UNION ALL SELECT ") + " AS v"
	case [][]any:
		return listed(v, func(row []any) string { return "(" + listed(row, literal) + ")" })
	}
	panic(fmt.Sprintf("mysqllease: no literal for a %T", v)) // the engine's own statements have no other
}

func listed[T any](values []T, literal func(T) string) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = literal(v)
	}
	return strings.Join(list, ", ")
}

package pglease

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// call is one call of one of hasp's functions. An argument is a []byte, [][]byte, int64,
// []int64 or bool.
type call struct {
	name string
	args []any
}

// literal writes the call with its arguments in the text. Bytes are hex digits and all
// else is digits, so nothing can end a literal early, whatever the server's settings.
func (n names) literal(b *strings.Builder, c call) {
	b.WriteString("SELECT * FROM ")
	b.WriteString(n.function(c.name))
	b.WriteByte('(')
	for i, arg := range c.args {
		if i > 0 {
			b.WriteString(", ")
		}
		writeLiteral(b, arg)
	}
	b.WriteByte(')')
}

func writeLiteral(b *strings.Builder, arg any) {
	switch v := arg.(type) {
	case []byte:
		b.WriteString("decode('")
		b.WriteString(hex.EncodeToString(v))
		b.WriteString("', 'hex')")
	case [][]byte:
		b.WriteString("ARRAY[")
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeLiteral(b, e)
		}
		b.WriteString("]::bytea[]")
	case int64:
		b.WriteByte('(')
		b.WriteString(strconv.FormatInt(v, 10))
		b.WriteByte(')')
	case []int64:
		b.WriteByte('\'')
		b.WriteString(integers(v))
		b.WriteString("'::bigint[]")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	}
}

// prepared writes the call with parameters, which are all sent as text: that way no
// driver of database/sql needs to know their types.
func (n names) prepared(c call) (text string, params []any) {
	var b strings.Builder
	b.WriteString("SELECT * FROM " + n.function(c.name) + "(")
	for i, arg := range c.args {
		if i > 0 {
			b.WriteString(", ")
		}
		value, kind := parameter(arg)
		b.WriteString("$" + strconv.Itoa(i+1) + "::text::" + kind)
		params = append(params, value)
	}
	b.WriteByte(')')
	return b.String(), params
}

func parameter(arg any) (value, kind string) {
	switch v := arg.(type) {
	case []byte:
		return `\x` + hex.EncodeToString(v), "bytea"
	case [][]byte:
		elements := make([]string, len(v))
		for i, e := range v {
			elements[i] = `"\\x` + hex.EncodeToString(e) + `"`
		}
		return "{" + strings.Join(elements, ",") + "}", "bytea[]"
	case int64:
		return strconv.FormatInt(v, 10), "bigint"
	case []int64:
		return integers(v), "bigint[]"
	case bool:
		return strconv.FormatBool(v), "boolean"
	}
	return "", "text"
}

func integers(v []int64) string {
	texts := make([]string, len(v))
	for i, n := range v {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// row is a row of a result in text format. It reads column by column; what cannot be read
// is an error at the end.
type row struct {
	columns []*string
	at      int
	err     error
}

func (r *row) text() string {
	if r.at >= len(r.columns) {
		r.fail(errColumns)
		return ""
	}
	c := r.columns[r.at]
	r.at++
	if c == nil {
		return ""
	}
	return *c
}

func (r *row) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// number is 0 where the column is NULL.
func (r *row) number() int64 {
	text := r.text()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.fail(err)
	}
	return n
}

// yes is false where the column is NULL.
func (r *row) yes() bool {
	text := r.text()
	if text == "" {
		return false
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		r.fail(err)
	}
	return yes
}

// bytes reads hex digits.
func (r *row) bytes() []byte {
	b, err := hex.DecodeString(r.text())
	if err != nil {
		r.fail(err)
	}
	return b
}

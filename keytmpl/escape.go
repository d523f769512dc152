package keytmpl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape answers a value as it stands in a key: every byte of a character that could be
// taken for the text of a template is "%" and two hexadecimal digits.
func Escape(value string) string {
	if !strings.ContainsFunc(value, separates) {
		return value
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for rest := value; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		char := rest[:size]
		rest = rest[size:]
		if !separates(r) {
			b.WriteString(char)
			continue
		}
		for _, c := range []byte(char) {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// separates says whether a character never stands in an escaped value, but for the sign
// of escaping itself.
func separates(r rune) bool {
	return !strings.ContainsRune("-_.~", r) && !unicode.In(r, unicode.L, unicode.N, unicode.M)
}

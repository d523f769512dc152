package mysqllease

import "github.com/hasp-dev/hasp/backend/sqllease"

// Statements is the page of SQL.
func Statements() string { return statements }

// Classify is classify.
func Classify(err error) sqllease.Fault { return classify(err) }

// Literal is literal.
func Literal(v any) string { return literal(v) }

// EveryColumn is what an inspection looks for.
const EveryColumn = everyColumn

package pglease

import "github.com/hasp-dev/hasp/backend/sqllease"

// Classify is classify.
func Classify(err error) sqllease.Fault { return classify(err) }

package driver

import "time"

// Query asks for one line or for a page of lines.
type Query struct {
	Key    string // one line; an empty line is answered, without holders
	Prefix string // without Key: the lines whose keys begin so; "": all
	After  string // only keys greater than this, as Page.Next said
	Limit  int    // lines to a page; 0: the driver's choice, at most 1,000
}

// Page is a part of a listing. Next is empty at the end. A page may hold fewer lines
// than the limit, also none, and not be the last.
type Page struct {
	Lines []Line
	Next  string
}

// Line is a key as a reader may see it.
type Line struct {
	Key     string
	Holders []Entry
	Waiters []Entry // the first 100, in order
	Waiting int     // how many wait
}

// Entry is a claim as a reader may see it: it has no ID.
type Entry struct {
	Number, Weight, Capacity int64
	Index                    uint8 // local index at the last take-over
	Name                     string
	InLine                   time.Duration // since it joined
	ExpiresIn                time.Duration // until it expires, Grace included
	Fixed, Revoked           bool
}

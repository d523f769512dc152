package sqllease

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// The statements a dialect must bring. Their arguments and results are described in
// the dialects' pages of SQL, which are all alike.
const (
	stLock        = "lock"
	stGlance      = "glance"
	stHeld        = "held"
	stAhead       = "ahead"
	stNear        = "near"
	stBehind      = "behind"
	stCrowd       = "crowd"
	stWaiting     = "waiting"
	stFind        = "find"
	stNumber      = "number"
	stHead        = "head"
	stFront       = "front"
	stDead        = "dead"
	stDeadFirst   = "dead_first"
	stDeadFallen  = "dead_fallen"
	stHolders     = "holders"
	stInsert      = "insert"
	stExtend      = "extend"
	stStand       = "stand"
	stRevoke      = "revoke"
	stTakeOver    = "take_over"
	stDelete      = "delete"
	stNumbered    = "numbered"
	stSaveLine    = "save_line"
	stDue         = "due"
	stDropLine    = "drop_line"
	stClock       = "clock"
	stPage        = "page"
	stMark        = "mark"
	stOpenSession = "open_session"
	stChange      = "change"
	stChanged     = "changed"
	stSuspects    = "suspects"
	stSessions    = "sessions"
	stNamed       = "named"
	stOwned       = "owned"
	stGuard       = "guard" // a dialect may leave it out
	stDropSession = "drop_session"
	stRenewLife   = "renew_life"
	stOpenLife    = "open_life"
	stLife        = "life"
	stKillLife    = "kill_life"
	stDropLife    = "drop_life"
	stFallenLives = "fallen_lives"
	stOwed        = "owed"
	stMine        = "mine"
	stPart        = "part"
	stSitters     = "sitters"
	stKeepLine    = "keep_line"
)

// The statements that a dialect with Rows brings as well.
const (
	stLockLines = "lock"      // instead of the other lock; makes what is not there
	stLockFree  = "lock_free" // lines nobody has locked
	stFindFree  = "find_free" // places of a claim nobody has locked
	stFreeLife  = "free_life" // a life nobody has locked
	// What is read of many at once.
	stSurveyLines = "survey_lines"
	stSurvey      = "survey"
	stMarks       = "marks"
	// What is written of many at once.
	stDeleteAll = "delete_all"
	stDropLines = "drop_lines"
)

// Tables are the quoted names of the tables.
type Tables struct {
	Claims, Lines, Sessions, Meta string
	prefix                        string
}

// NewTables quotes the names that the options ask for, once they are checked.
func NewTables(quote func(schema, name string) string, opts *Options) (Tables, error) {
	n, err := opts.validate()
	if err != nil {
		return Tables{}, err
	}
	q := func(name string) string { return quote(n.schema, n.prefix+name) }
	return Tables{Claims: q("claims"), Lines: q("lines"), Sessions: q("sessions"), Meta: q("meta"), prefix: n.prefix}, nil
}

// Name answers the bare name of a table or index, as the database's catalogue has it.
func (t Tables) Name(table string) string { return t.prefix + table }

// Expand puts the names into a dialect's SQL.
func (t Tables) Expand(text string) string {
	return strings.NewReplacer("{claims}", t.Claims, "{lines}", t.Lines, "{sessions}", t.Sessions,
		"{meta}", t.Meta, "{prefix}", t.prefix).Replace(text)
}

// parse splits a page of SQL into its statements. "-- name: x" begins the statement x,
// "-- part: x" text that stands for {x} from there on; other comments are dropped, and
// $1, $2 … are the parameters.
func parse(page string, marker func(n int) string) map[string]string {
	parameter := regexp.MustCompile(`\$(\d+)`)
	texts := map[string]map[string]string{"name": {}, "part": {}}
	kind, name := "", ""
	for line := range strings.Lines(page) {
		trimmed := strings.TrimSpace(line)
		if next, ok := strings.CutPrefix(trimmed, "-- name: "); ok {
			kind, name = "name", next
			continue
		}
		if next, ok := strings.CutPrefix(trimmed, "-- part: "); ok {
			kind, name = "part", next
			continue
		}
		if name == "" || trimmed == "" || strings.HasPrefix(trimmed, "--") {
			continue
		}
		for part, text := range texts["part"] {
			trimmed = strings.ReplaceAll(trimmed, "{"+part+"}", strings.TrimSpace(text))
		}
		texts[kind][name] += " " + trimmed
	}
	all := texts["name"]
	for name, text := range all {
		text = strings.TrimSuffix(strings.TrimSpace(text), ";")
		all[name] = parameter.ReplaceAllStringFunc(text, func(p string) string {
			n, _ := strconv.Atoi(p[1:])
			return marker(n)
		})
	}
	return all
}

// statements prepares each statement once on the handle; database/sql prepares it again
// on each connection that needs it.
type statements struct {
	text map[string]string

	mu       sync.Mutex
	prepared map[string]*sql.Stmt // guarded by mu
}

func (s *statements) get(ctx context.Context, db *sql.DB, name string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.prepared[name]; ok {
		return st, nil
	}
	text, ok := s.text[name]
	if !ok {
		return nil, fmt.Errorf("no statement %q in the dialect", name)
	}
	st, err := db.PrepareContext(ctx, text) //nolint:sqlclosecheck // kept until close
	if err != nil {
		return nil, err
	}
	s.prepared[name] = st
	return st, nil
}

// prepareAll makes every statement ready, so that no step waits for a second connection
// while it has one.
func (s *statements) prepareAll(ctx context.Context, db *sql.DB) error {
	for name := range s.text {
		if _, err := s.get(ctx, db, name); err != nil { //nolint:sqlclosecheck // kept until close
			return err
		}
	}
	return nil
}

// fill writes the values into the text of a statement.
func (s *statements) fill(name string, literal func(any) string, args []any) string {
	var b strings.Builder
	text := s.text[name]
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n := 0
		for ; rest != "" && rest[0] >= '0' && rest[0] <= '9'; rest = rest[1:] {
			n = 10*n + int(rest[0]-'0')
		}
		b.WriteString(literal(args[n-1]))
		text = rest
	}
}

func (s *statements) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, st := range s.prepared {
		_ = st.Close() // the handle is the user's and may be closed already
		delete(s.prepared, name)
	}
}

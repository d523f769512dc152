package mysqllease

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/hasp-dev/hasp/driver"
)

// What a connection is set to for the time of a step. The server ends a transaction whose
// client says nothing for that long, however the network hides it: its locks bar the way of
// everybody in the same lines. And a client that has left waits for no lock for ever.
const (
	silence  = 3 // seconds, for wait_timeout
	lockWait = 1 // seconds, for innodb_lock_wait_timeout
)

// server is what was seen of a server's settings, and how transactions begin and end there.
type server struct {
	database string // of the tables; empty: the connection's

	mu         sync.Mutex
	begin, end string // guarded by mu
}

// Begin makes the next statement the first of a READ COMMITTED transaction, whatever the
// defaults of the connection.
func (s *server) Begin(ctx context.Context, conn *sql.Conn) error {
	s.mu.Lock()
	begin := s.begin
	s.mu.Unlock()
	_, err := conn.ExecContext(ctx, begin)
	return err
}

// Commit commits, by switching autocommit on, and sets the connection to what it was: one
// round trip for both.
func (s *server) Commit(ctx context.Context, conn *sql.Conn) error {
	s.mu.Lock()
	end := s.end
	s.mu.Unlock()
	_, err := conn.ExecContext(ctx, end)
	return err
}

// Rollback rolls back and sets the connection to what it was. A connection on which it fails
// must not be used again.
func (s *server) Rollback(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		return err
	}
	return s.Commit(ctx, conn)
}

// look reads the settings that matter.
func (s *server) look(ctx context.Context, conn *sql.Conn) error {
	is, err := variables(ctx, conn)
	if err != nil {
		return err
	}
	isolation := "transaction_isolation"
	if _, ok := is[isolation]; !ok { // MariaDB before 11.1
		isolation = "tx_isolation"
	}
	was := is[isolation]
	if strings.Trim(was, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" || was == "" {
		return fmt.Errorf("%s: %w: the server does not say its isolation level but %q", name, driver.ErrRefused, was)
	}
	if v := is["autocommit"]; v != "ON" {
		return fmt.Errorf("%s: %w: autocommit is %s on this handle; open it without that setting", name, driver.ErrRefused, v)
	}
	set := func(autocommit int, level, silence, lockWait string) string {
		return fmt.Sprintf("SET SESSION autocommit = %d, SESSION %s = '%s', SESSION wait_timeout = %s, SESSION innodb_lock_wait_timeout = %s",
			autocommit, isolation, level, silence, lockWait)
	}
	idle, err := strconv.Atoi(is["wait_timeout"])
	if err != nil {
		return fmt.Errorf("%s: %w: the server's wait_timeout is no number: %w", name, driver.ErrRefused, err)
	}
	waits, err := strconv.Atoi(is["innodb_lock_wait_timeout"])
	if err != nil {
		return fmt.Errorf("%s: %w: the server's innodb_lock_wait_timeout is no number, is there InnoDB?: %w", name, driver.ErrRefused, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin = set(0, "READ-COMMITTED", strconv.Itoa(min(silence, idle)), strconv.Itoa(lockWait))
	s.end = set(1, was, strconv.Itoa(idle), strconv.Itoa(waits))
	return nil
}

// variables answers the settings of this connection that matter.
func variables(ctx context.Context, conn *sql.Conn) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, `SHOW VARIABLES WHERE Variable_name IN
		('transaction_isolation', 'tx_isolation', 'autocommit', 'wait_timeout', 'innodb_lock_wait_timeout')`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		all[name] = value
	}
	return all, rows.Err()
}

package mysqllease_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/hasp-dev/hasp/backend/mysqllease"
)

// serverVariable names another server's program for the tests: a mysqld of MySQL.
const serverVariable = "HASP_MYSQL_SERVER"

// mysqlInit lets the tests in, who come over TCP.
const mysqlInit = "CREATE USER IF NOT EXISTS root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"

// server is a MariaDB of this test's own, or what serverVariable names.
type server struct {
	addr string
	dir  string
	args []string
	cmd  *exec.Cmd
}

// startServer starts a mariadbd on a free port of the loopback, in a folder of its own.
func startServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	s := &server{dir: tb.TempDir(), args: args}
	if text, err := s.install(tb).CombinedOutput(); err != nil {
		tb.Fatalf("the server's data cannot be made: %v\n%s", err, text)
	}
	tb.Cleanup(s.stop)
	for range 5 {
		s.addr = freeAddr(tb)
		if s.start(tb) {
			return s
		}
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	tb.Fatalf("the server does not start:\n%s", text)
	return nil
}

// install makes the server's data.
func (s *server) install(tb testing.TB) *exec.Cmd {
	tb.Helper()
	args := []string{"--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--tmpdir=" + s.dir, "--user=" + user()}
	if path := os.Getenv(serverVariable); path != "" {
		return exec.Command(path, append(args, "--initialize-insecure")...)
	}
	return exec.Command(program(tb, "mariadb-install-db"), append(args, "--auth-root-authentication-method=normal", "--skip-test-db")...)
}

// setting is the name of a setting of transactions, which MariaDB calls tx_….
func setting(name string) string {
	if os.Getenv(serverVariable) != "" {
		return "transaction_" + name
	}
	return "tx_" + name
}

func program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		tb.Fatalf("%s is missing; install it (Debian: apt-get install mariadb-server)", name)
	}
	return path
}

// user is who the server runs as: it refuses to run as root unless told so.
func user() string {
	if os.Getuid() == 0 {
		return "root"
	}
	return strconv.Itoa(os.Getuid())
}

// start starts the server, for the first time or once more, and waits until it answers.
func (s *server) start(tb testing.TB) bool {
	tb.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		tb.Fatal(err)
	}
	init := filepath.Join(s.dir, "init.sql")
	path, own := os.Getenv(serverVariable), []string{"--mysqlx=OFF", "--secure-file-priv=NULL", "--init-file=" + init}
	if path == "" {
		path, own = program(tb, "mariadbd"), nil
	} else if err := os.WriteFile(init, []byte(mysqlInit), 0o600); err != nil {
		tb.Fatal(err)
	}
	s.cmd = exec.Command(path, slices.Concat([]string{
		"--no-defaults", "--user=" + user(), "--datadir=" + filepath.Join(s.dir, "data"), "--tmpdir=" + s.dir, "--bind-address=127.0.0.1", "--port=" + port,
		"--socket=" + filepath.Join(s.dir, "sock"), "--pid-file=" + filepath.Join(s.dir, "pid"), "--skip-log-bin",
		"--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=64M", "--max-connections=1000",
	}, own, s.args)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	db := s.open(tb, "")
	defer db.Close()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var pid string
		err := db.QueryRow("SELECT @@pid_file").Scan(&pid)
		if err != nil {
			continue
		}
		return pid == filepath.Join(s.dir, "pid") // else somebody else took the port
	}
	s.stop()
	return false
}

func (s *server) stop() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

func freeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// open opens a handle on one of the server's databases, closed with the test.
func (s *server) open(tb testing.TB, database string, set ...func(*mysql.Config)) *sql.DB {
	tb.Helper()
	db := s.handle(tb, database, set...)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func (s *server) handle(tb testing.TB, database string, set ...func(*mysql.Config)) *sql.DB {
	tb.Helper()
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", s.addr, database
	c.Logger = &mysql.NopLogger{}
	for _, f := range set {
		f(c)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		tb.Fatal(err)
	}
	return sql.OpenDB(connector)
}

// database makes a database of a test's own with hasp's tables and answers its name.
func (s *server) database(tb testing.TB) string {
	tb.Helper()
	name, err := s.newDatabase()
	if err != nil {
		tb.Fatal(err)
	}
	if err := mysqllease.Migrate(tb.Context(), s.open(tb, name), nil); err != nil {
		tb.Fatal(err)
	}
	return name
}

var databases atomic.Int64

func (s *server) newDatabase() (string, error) {
	name := fmt.Sprintf("test_%d", databases.Add(1))
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = "root", "tcp", s.addr
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return "", err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	_, err = db.ExecContext(context.Background(), "CREATE DATABASE "+name+" DEFAULT CHARACTER SET utf8mb4")
	return name, err
}

// pause stops the server's process, so that it takes what is sent and answers nothing.
func (s *server) pause() (resume func(), err error) {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }, nil
}

// shared is one server for tests that do nothing to it as a whole. The first test that
// asks starts it; TestMain stops it.
var shared struct {
	once   sync.Once
	server *server
	stops  []func()
}

// detached lets a server outlive the test that started it.
type detached struct{ testing.TB }

func (d detached) Cleanup(f func()) { shared.stops = append(shared.stops, f) }
func (d detached) TempDir() string {
	dir, err := os.MkdirTemp("", "mysqllease")
	if err != nil {
		d.Fatal(err)
	}
	shared.stops = append(shared.stops, func() { _ = os.RemoveAll(dir) })
	return dir
}

func sharedServer(tb testing.TB) *server {
	tb.Helper()
	shared.once.Do(func() { shared.server = startServer(detached{tb}) })
	if shared.server == nil {
		tb.Fatal("the shared server did not start")
	}
	return shared.server
}

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(shared.stops) - 1; i >= 0; i-- {
		shared.stops[i]()
	}
	os.Exit(code)
}

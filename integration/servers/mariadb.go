package servers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hasp-dev/hasp/integration/process"
)

// MariaDB is one server, on a free port, with a folder of its own. Both stay the same over
// restarts.
type MariaDB struct {
	Addr string // host:port

	dir  string
	args []string
	proc *process.Process
}

// StartMariaDB starts a server. args are as on its command line. The caller closes it.
func StartMariaDB(args ...string) (*MariaDB, error) {
	dir, err := os.MkdirTemp("", "hasp-mariadb-")
	if err != nil {
		return nil, err
	}
	m := &MariaDB{dir: dir, args: args}
	if err := oneOfFew(m.prepare); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	for tries := 1; ; tries++ {
		port, err := freePort()
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.Addr = net.JoinHostPort(loopback, strconv.Itoa(port))
		if err = m.Start(); err == nil {
			return m, nil
		}
		if tries == portTries || !errors.Is(err, errPortTaken) {
			return nil, errors.Join(err, m.Close())
		}
	}
}

var mariaDBData folder

// prepare makes the folder of the data.
func (m *MariaDB) prepare() error {
	return mariaDBData.write(filepath.Join(m.dir, "data"), nil, m.install)
}

func (m *MariaDB) install() error {
	cmd, err := m.command("mariadb-install-db", "--auth-root-authentication-method=normal", "--skip-test-db")
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w:\n%s", err, out)
	}
	return nil
}

// Start starts the server again after Kill.
func (m *MariaDB) Start() error { return oneOfFew(m.start) }

func (m *MariaDB) start() error {
	_, port, err := net.SplitHostPort(m.Addr)
	if err != nil {
		return err
	}
	cmd, err := m.command("mariadbd", append([]string{
		"--bind-address=" + loopback, "--port=" + port, "--socket=" + filepath.Join(m.dir, "socket"),
		"--pid-file=" + filepath.Join(m.dir, "pid"), "--skip-log-bin", "--skip-name-resolve",
	}, m.args...)...)
	if err != nil {
		return err
	}
	if m.proc, err = process.Start(cmd, nil); err != nil {
		return err
	}
	if err := m.proc.Await("ready for connections"); err != nil {
		m.proc.Kill()
		if strings.Contains(m.proc.Output(), "Address already in use") {
			return errPortTaken
		}
		return err
	}
	return nil
}

// command is a program of MariaDB's on this server's data. As root it runs only when it is
// told to.
func (m *MariaDB) command(name string, args ...string) (*exec.Cmd, error) {
	path, err := binary(name, "mariadb-server")
	if err != nil {
		if path, err = binary("/usr/sbin/"+name, "mariadb-server"); err != nil {
			return nil, err
		}
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	all := append([]string{
		"--no-defaults", "--datadir=" + filepath.Join(m.dir, "data"), "--user=" + me.Username,
		"--tmpdir=" + m.dir, // a server deletes what others have in theirs
		"--innodb-log-file-size=8M",
	}, args...)
	return exec.Command(path, all...), nil
}

// DSN is the address of one of the server's databases for clients; "" is none.
func (m *MariaDB) DSN(database string) string { return "root@tcp(" + m.Addr + ")/" + database }

// PID is the server's process id.
func (m *MariaDB) PID() int { return m.proc.PID() }

// Kill ends the server as a crash does.
func (m *MariaDB) Kill() { m.proc.Kill() }

// Pause makes the server silent; its connections stay.
func (m *MariaDB) Pause() error { return m.proc.Pause() }

// Resume lets a paused server go on.
func (m *MariaDB) Resume() error { return m.proc.Resume() }

// Close ends the server and removes its folder.
func (m *MariaDB) Close() error {
	if m.proc != nil {
		m.proc.Kill()
	}
	return os.RemoveAll(m.dir)
}

package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hasp-dev/hasp/integration/process"
)

// PgBouncer is a pooler before a PostgreSQL server.
type PgBouncer struct {
	Addr string // host:port

	dir  string
	proc *process.Process
}

// StartPgBouncer starts a pooler that lends a server connection for a transaction at a
// time, and has so many of them. The caller closes it.
func StartPgBouncer(p *Postgres, connections int) (*PgBouncer, error) {
	dir, err := os.MkdirTemp("", "hasp-pgbouncer-")
	if err != nil {
		return nil, err
	}
	b := &PgBouncer{dir: dir}
	for tries := 1; ; tries++ {
		if err = b.start(p, connections); err == nil {
			return b, nil
		}
		if tries == portTries || !errors.Is(err, errPortTaken) {
			return nil, errors.Join(err, b.Close())
		}
	}
}

func (b *PgBouncer) start(p *Postgres, connections int) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	b.Addr = loopback + ":" + strconv.Itoa(port)
	config, users := filepath.Join(b.dir, "pgbouncer.ini"), filepath.Join(b.dir, "users")
	host, serverPort, _ := strings.Cut(p.Addr, ":")
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr = %s\nlisten_port = %d\nunix_socket_dir =\n"+
		"auth_type = trust\nauth_file = %s\npool_mode = transaction\ndefault_pool_size = %d\nmax_client_conn = 1000\n"+
		"ignore_startup_parameters = extra_float_digits\n", host, serverPort, loopback, port, users, connections)
	err = errors.Join(os.WriteFile(config, []byte(text), 0o644), os.WriteFile(users, []byte("\"postgres\" \"\"\n"), 0o644), os.Chmod(b.dir, 0o755))
	if err != nil {
		return err
	}
	path, err := binary("pgbouncer", "pgbouncer")
	if err != nil {
		if path, err = binary("/usr/sbin/pgbouncer", "pgbouncer"); err != nil {
			return err
		}
	}
	cmd, err := p.asPostgres(path, config)
	if err != nil {
		return err
	}
	cmd.Dir = b.dir
	if b.proc, err = process.Start(cmd, nil); err != nil {
		return err
	}
	if err := b.proc.Await("process up"); err != nil {
		b.proc.Kill()
		if strings.Contains(b.proc.Output(), "Address already in use") {
			return errPortTaken
		}
		return err
	}
	return nil
}

// URL is the pooler's address for clients.
func (b *PgBouncer) URL() string {
	return "postgres://postgres@" + b.Addr + "/postgres?sslmode=disable"
}

// Close ends the pooler and removes its folder.
func (b *PgBouncer) Close() error {
	if b.proc != nil {
		b.proc.Kill()
	}
	return os.RemoveAll(b.dir)
}

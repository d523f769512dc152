package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/hasp-dev/hasp/integration/process"
)

// Postgres is one PostgreSQL server, on a free port, with a folder of its own.
type Postgres struct {
	Addr string // host:port

	dir  string
	proc *process.Process
}

// StartPostgres starts a server. settings are name=value, as in its configuration file.
// The caller closes it.
func StartPostgres(settings ...string) (*Postgres, error) {
	dir, err := os.MkdirTemp("", "hasp-postgres-")
	if err != nil {
		return nil, err
	}
	p := &Postgres{dir: dir}
	if err := p.prepare(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	for tries := 1; ; tries++ {
		if err = p.start(settings); err == nil {
			return p, nil
		}
		if tries == portTries || !errors.Is(err, errPortTaken) {
			return nil, errors.Join(err, p.Close())
		}
	}
}

// prepare makes the folder of the data.
func (p *Postgres) prepare() error {
	cmd, err := p.command("initdb", "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
	if err != nil {
		return err
	}
	if owner := cmd.SysProcAttr.Credential; owner != nil {
		if err := os.Chown(p.dir, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w:\n%s", err, out)
	}
	return nil
}

func (p *Postgres) start(settings []string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	p.Addr = loopback + ":" + strconv.Itoa(port)
	args := []string{"-p", strconv.Itoa(port), "-k", p.dir, "-h", loopback}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	cmd, err := p.command("postgres", args...)
	if err != nil {
		return err
	}
	if p.proc, err = process.Start(cmd, nil); err != nil {
		return err
	}
	if err := p.proc.Await("database system is ready to accept connections"); err != nil {
		p.proc.Kill()
		if strings.Contains(p.proc.Output(), "Address already in use") {
			return errPortTaken
		}
		return err
	}
	return nil
}

// command is a program of PostgreSQL's on this server's data. PostgreSQL refuses to run as
// root, so root runs it as the user that its package has made.
func (p *Postgres) command(name string, args ...string) (*exec.Cmd, error) {
	path, err := postgresProgram(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, append([]string{"-D", filepath.Join(p.dir, "data")}, args...)...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Getuid() != 0 {
		return cmd, nil
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres; apt-get install postgresql makes one: %w", err)
	}
	uid, _ := strconv.ParseUint(owner.Uid, 10, 32) // they are numbers here
	gid, _ := strconv.ParseUint(owner.Gid, 10, 32)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return cmd, nil
}

// postgresProgram finds a program that Debian keeps off the PATH, of the newest version.
func postgresProgram(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return found[len(found)-1], nil
	}
	return binary(name, "postgresql")
}

// URL is the server's address for clients.
func (p *Postgres) URL() string { return "postgres://postgres@" + p.Addr + "/postgres?sslmode=disable" }

// PID is the process id of the server, whose children serve the clients.
func (p *Postgres) PID() int { return p.proc.PID() }

// Close ends the server and removes its folder.
func (p *Postgres) Close() error {
	if p.proc != nil {
		// Not killed, so that it gives its shared memory back.
		_ = p.proc.Signal(syscall.SIGINT)
		ctx, stop := context.WithTimeout(context.Background(), process.Limit)
		defer stop()
		_ = p.proc.Wait(ctx)
		p.proc.Kill()
	}
	return os.RemoveAll(p.dir)
}

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

// Postgres is one PostgreSQL server. Its port and folder stay the same over restarts.
type Postgres struct {
	Addr string // host:port

	dir      string
	settings []string
	proc     *process.Process
}

// StartPostgres starts a server. settings are name=value, as in its configuration file.
// The caller closes it.
func StartPostgres(settings ...string) (*Postgres, error) {
	return newPostgres(settings, (*Postgres).prepare)
}

// StartStandby starts a standby of the server, which follows it without making it wait.
func (p *Postgres) StartStandby() (*Postgres, error) {
	return newPostgres(p.settings, func(s *Postgres) error { return s.copyOf(p) })
}

func newPostgres(settings []string, prepare func(*Postgres) error) (*Postgres, error) {
	dir, err := os.MkdirTemp("", "hasp-postgres-")
	if err != nil {
		return nil, err
	}
	p := &Postgres{dir: dir, settings: settings}
	if err := oneOfFew(func() error { return prepare(p) }); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	for tries := 1; ; tries++ {
		port, err := freePort()
		if err == nil {
			p.Addr = loopback + ":" + strconv.Itoa(port)
			err = p.Start()
		}
		if err == nil {
			return p, nil
		}
		if tries == portTries || !errors.Is(err, errPortTaken) {
			return nil, errors.Join(err, p.Close())
		}
	}
}

var postgresData folder

// prepare makes the folder of the data.
func (p *Postgres) prepare() error {
	owner, err := postgresOwner()
	if err == nil && owner != nil {
		err = os.Chown(p.dir, int(owner.Uid), int(owner.Gid))
	}
	if err != nil {
		return err
	}
	return postgresData.write(p.data(), owner, p.initdb)
}

func (p *Postgres) initdb() error {
	return p.run("initdb", "-D", p.data(), "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
}

// copyOf makes the folder of a standby's data.
func (p *Postgres) copyOf(primary *Postgres) error {
	return p.run("pg_basebackup", "-d", primary.URL(), "-D", p.data(), "-R", "-X", "stream", "-c", "fast")
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// run runs one of PostgreSQL's programs to its end.
func (p *Postgres) run(name string, args ...string) error {
	cmd, err := p.command(name, args...)
	if err != nil {
		return err
	}
	if owner := cmd.SysProcAttr.Credential; owner != nil {
		if err := os.Chown(p.dir, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w:\n%s", name, err, out)
	}
	return nil
}

// Start starts the server again after Kill, on the same port and folder.
func (p *Postgres) Start() error { return oneOfFew(p.start) }

func (p *Postgres) start() error {
	_, port, _ := strings.Cut(p.Addr, ":")
	args := []string{"-D", p.data(), "-p", port, "-k", p.dir, "-h", loopback}
	for _, s := range p.settings {
		args = append(args, "-c", s)
	}
	var taken error
	err := await("PostgreSQL to start", func(context.Context) (bool, error) {
		cmd, err := p.command("postgres", args...)
		if err != nil {
			return false, err
		}
		if p.proc, err = process.Start(cmd, nil); err != nil {
			return false, err
		}
		if err = p.proc.Await("database system is ready to accept"); err == nil {
			return true, nil // also "read-only connections"
		}
		p.proc.Kill()
		if strings.Contains(p.proc.Output(), "Address already in use") {
			taken = errPortTaken
			return true, nil
		}
		return false, err // what the killed one has left may take a moment to go
	})
	return errors.Join(err, taken)
}

// command is a program of PostgreSQL's.
func (p *Postgres) command(name string, args ...string) (*exec.Cmd, error) {
	path, err := postgresProgram(name)
	if err != nil {
		return nil, err
	}
	return p.asPostgres(path, args...)
}

// asPostgres is a program that runs as the owner of PostgreSQL's folder.
func (p *Postgres) asPostgres(path string, args ...string) (*exec.Cmd, error) {
	owner, err := postgresOwner()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: owner}
	return cmd, nil
}

// postgresOwner is the user that PostgreSQL's package has made, for root, as whom
// PostgreSQL refuses to run; nil otherwise.
func postgresOwner() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // the user that this is
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user postgres; apt-get install postgresql makes one: %w", err)
	}
	uid, _ := strconv.ParseUint(owner.Uid, 10, 32) // they are numbers here
	gid, _ := strconv.ParseUint(owner.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
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

// Errors are the lines of the server's log that complain.
func (p *Postgres) Errors() string {
	var all []string
	for line := range strings.Lines(p.proc.Output()) {
		if strings.Contains(line, "ERROR:") || strings.Contains(line, "FATAL:") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return strings.Join(all, "\n")
}

// Kill ends the server as a crash does.
func (p *Postgres) Kill() {
	children := p.children()
	p.proc.Kill()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Pause makes the server silent; its connections stay.
func (p *Postgres) Pause() error {
	if err := p.proc.Pause(); err != nil { // it starts no more children
		return err
	}
	for _, pid := range p.children() {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // one that has ended is as silent
	}
	return nil
}

// Resume lets a paused server go on.
func (p *Postgres) Resume() error {
	for _, pid := range p.children() {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	return p.proc.Resume()
}

// children are the processes that the server has started.
func (p *Postgres) children() []int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID(), p.PID()))
	var all []int
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// Promote makes a standby a primary.
func (p *Postgres) Promote() error { return p.run("pg_ctl", "promote", "-D", p.data(), "-w") }

// Close ends the server and removes its folder.
func (p *Postgres) Close() error {
	if p.proc != nil {
		// Not killed, so that it gives its shared memory back.
		_ = p.Resume()
		_ = p.proc.Signal(syscall.SIGINT)
		ctx, stop := context.WithTimeout(context.Background(), process.Limit)
		defer stop()
		_ = p.proc.Wait(ctx)
		p.proc.Kill()
	}
	return os.RemoveAll(p.dir)
}

// Command hasp runs commands while holding locks, and shows and takes away locks.
//
//	hasp run nightly -- ./backup.sh
//
// The store is named by --url, --url-file or HASP_URL; without them it is a SQLite
// file of the user, which excludes on this machine only.
//
// # Exit codes
//
// Of run and elect: the command's own (cron goes on, and tells it); 128 + n if it died of signal n; 126 and 127 if it
// cannot be run or is not there; 137 also if the guard between hasp and the command was
// killed. Of all: 64 wrong usage, 69 the store is unreachable or refuses, 70 the lease
// was lost, 74 the output cannot be written, 75 not acquired (run), and 1 not held
// (release) or nobody leads (leader).
package main

import (
	"context"
	"errors"
	"io"
	"os"
	_ "time/tzdata" // for machines and images without it

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite" // the SQLite driver of this program

	"github.com/hasp-dev/hasp/cmd/hasp/internal/guard"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == guard.Argument {
		os.Exit(guard.Serve(os.Args[2:]))
	}
	redis.SetLogger(silence{})
	os.Exit(Main(context.Background(), os.Args[1:], os.Environ(), Streams{os.Stdout, os.Stderr}))
}

// silence is what becomes of what the Redis client logs, such as each look at Sentinel:
// what matters comes back as an error.
type silence struct{}

// Printf implements the logger of go-redis.
func (silence) Printf(context.Context, string, ...any) {}

// Streams are where the command prints. What run starts has the process's own.
type Streams struct {
	Out, Err io.Writer
}

// Main runs hasp with these arguments and environment, and answers the exit code.
func Main(ctx context.Context, args, env []string, streams Streams) int {
	a := &app{env: env, Streams: Streams{output{streams.Out}, streams.Err}}
	root := newRoot(a) //nolint:contextcheck // cobra hands ctx to the commands
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var done exited
	if err == nil {
		return exitOK
	}
	if errors.As(err, &done) {
		return int(done)
	}
	return a.fail(err)
}

// Command bench measures hasp beside other libraries for locks, on servers that it
// starts itself, and writes the table in docs/benchmarks.md. `make bench/peers` runs it.
//
// Whatever is compared is measured in one run, in rounds in which every side has its
// turn; a ratio is the median of the rounds' ratios. Servers run on one core and clients
// on another.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	contend() // does not return in a process of contenders
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// command is main without the process.
func command(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "", "the markdown file to write; else it is printed")
	quick := flags.Bool("smoke", false, "measure next to nothing: does the code still work?")
	only := flags.String("only", "", "these groups only, with commas between: "+strings.Join(names(), ", "))
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends what does not listen to the first
	p := full()
	if *quick {
		p = smoke()
	}
	p.progress = stderr
	err := run(ctx, p, *only, *out, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, p plan, only, out string, stdout io.Writer) error {
	if err := p.takeCores(); err != nil {
		return err
	}
	parts, err := measure(ctx, p, only)
	if err != nil {
		return err
	}
	text, err := document(p, parts)
	if err != nil {
		return err
	}
	if out != "" {
		err = os.WriteFile(out, []byte(text), 0o644)
	}
	_, printed := io.WriteString(stdout, text)
	return errors.Join(err, printed)
}

// group measures one part of the table.
type group struct {
	name, title string
	measure     func(ctx context.Context, p plan) ([]row, error)
}

// part is a group's rows.
type part struct {
	title string
	rows  []row
}

// groups are all of them, in the order of the table.
func groups() []group {
	return []group{
		{"free", "Redis: a free lock, taken and released", measureFree},
		{"handover", "Redis: from one process to the next", measureHandOver},
		{"contention", "Redis: many who want one key", measureContention},
		{"renewal", "Redis: keeping locks", measureRenewal},
		{"scripts", "Redis: on the server", measureScripts},
		{"memory", "Redis: memory", measureMemory},
		{"partition", "Redis: a silent network", measurePartition},
		{"postgres", "PostgreSQL", measurePostgres},
		{"growth", "PostgreSQL: what locks leave behind", measureGrowth},
		{"mariadb", "MariaDB", measureMariaDB},
		{"local", "Within a process, and in a file", measureLocal},
	}
}

func names() []string {
	var all []string
	for _, g := range groups() {
		all = append(all, g.name)
	}
	return all
}

// measure runs the groups that are wanted, all if only is empty.
func measure(ctx context.Context, p plan, only string) ([]part, error) {
	wanted := names()
	if only != "" {
		wanted = strings.Split(only, ",")
	}
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("there is no group %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	var parts []part
	for _, g := range groups() {
		if !slices.Contains(wanted, g.name) {
			continue
		}
		begin := time.Now()
		rows, err := g.measure(ctx, p)
		if err != nil && ctx.Err() == nil {
			p.say("%s: %v; once more", g.name, err)
			rows, err = g.measure(ctx, p)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		parts = append(parts, part{g.title, rows})
		p.say("%s: %.0f s", g.name, time.Since(begin).Seconds())
		for _, r := range rows {
			p.say("    %s: %s %s (%s)", r.what, r.measured, r.ratio, r.verdict)
		}
	}
	return parts, nil
}

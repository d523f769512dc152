package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

const head = `# Benchmarks

Made by ` + "`make bench/peers`" + `, which starts the servers and clients it needs and takes some minutes. All
sides of a comparison are measured in one run, in rounds in which each has its turn; figures are medians of the
rounds, and a ratio is the median of the rounds' ratios. Servers run on one core and clients on another, so
compare ratios: your machine has other absolute times, and more cores.

"Raw" is a lock by hand on the same go-redis client: ` + "`SET NX PX`" + `, and a script that compares and deletes.

`

// document writes the page.
func document(p plan, parts []part) (string, error) {
	about, err := machine(p)
	if err != nil {
		return "", err
	}
	var text, notes strings.Builder
	text.WriteString(head + about + "\n")
	known, noted := reasons(), 0
	for _, part := range parts {
		fmt.Fprintf(&text, "## %s\n\n| what | measured | ratio | goal | |\n|---|---|---|---|---|\n", part.title)
		for _, r := range part.rows {
			verdict := string(r.verdict)
			if r.verdict == missed {
				noted++
				verdict += fmt.Sprintf(" (%d)", noted)
				reason := known[r.id]
				if reason == "" {
					reason = "No reason is known yet."
				}
				fmt.Fprintf(&notes, "%d. %s: %s\n", noted, r.what, reason)
			}
			fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", r.what, r.measured, r.ratio, r.goal, verdict)
		}
		text.WriteString("\n")
	}
	if noted > 0 {
		fmt.Fprintf(&text, "## Missed, and why\n\n%s\n", notes.String())
	}
	text.WriteString(configurations)
	return text.String(), nil
}

const configurations = `## How each side is configured

- hasp: nothing but defaults, except where a row says "Sticky" (a minute). Who contends for a key is a
  client of its own on Redis; on the databases a process has one client, with one pool, and ` + "`LocalHandoffs: -1`" + `, so that
  each goroutine stands in line by itself. Within a process, goroutines share one client.
- raw, bsm/redislock, redsync: a go-redis client with nothing but defaults, on one server. With many
  goroutines bsm/redislock is measured with a bigger pool, too, and hasp is held against the quicker of both. Where
  they wait, bsm/redislock tries every 10 ms, more often than its examples do.
- raw, AutoPipeline: the same lock by hand through go-redis' pipelining of concurrent callers, with its defaults;
  go-redis calls it experimental.
- rueidislock: ` + "`KeyMajority: 1` and `NoLoopTracking: true`" + `, as its README recommends for one server, and a
  ` + "`TryNextAfter`" + ` of 5 s instead of 20 ms, since an attempt that takes longer can leave its caller waiting for ever.
- The databases are PostgreSQL with ` + "`fsync=off`" + ` (except where a row says otherwise) and MariaDB with
  ` + "`innodb-flush-log-at-trx-commit=0`" + `, so that it is not the disk that is measured; all else is as it comes.
- All locks live for 10 s. Of the libraries, hasp and rueidislock renew while a lock is held; raw, bsm/redislock and
  redsync leave that to their caller. Only hasp gives a fencing token, and serves in order.
`

// machine says on what the figures were taken.
func machine(p plan) (string, error) {
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	model := "of an unknown kind"
	if m := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(cpu); m != nil {
		model = string(m[1])
	}
	count := strings.Count(string(cpu), "\nprocessor") + 1
	with := []string{runtime.Version()}
	for _, server := range slices.Sorted(maps.Keys(p.versions)) {
		with = append(with, server+" "+p.versions[server])
	}
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		for _, lib := range []string{"go-redis/v9", "bsm/redislock", "redsync/v4", "redis/rueidis", "jackc/pgx/v5", "go-sql-driver/mysql"} {
			if strings.HasSuffix(m.Path, lib) {
				with = append(with, m.Path+" "+m.Version)
			}
		}
	}
	return fmt.Sprintf("Measured on %d cores (%s) with %s.\n", count, model, strings.Join(with, ", ")), nil
}

package crew

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/hasp-dev/hasp/integration/history"
	"github.com/hasp-dev/hasp/schedule"
)

// What a node writes about a run: Text of a note whose Number is the tick, in ms.
const (
	RunBegan = "began"
	RunEnded = "ended" // with the lease still held
	RunCut   = "cut"   // after its lease was lost, or the node was told to end
)

// JobName is the job of all nodes.
const JobName = "job"

// turn runs a scheduler with one job until standard input ends.
func turn(ctx context.Context, b Brief) error {
	record, err := history.Open(b.History, b.Name)
	if err != nil {
		return err
	}
	client, handle, err := b.open(b.Name)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Close() }()
	s, err := schedule.New(client, &schedule.Options{
		TTL: b.TTL, Now: func() time.Time { return time.Now().Add(b.Skew) },
		Logger: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	})
	if err == nil {
		err = s.Add(schedule.Job{
			Name: JobName, Cron: "@every " + b.Ticks.String(), Overlap: schedule.OverlapAllow,
			Run: func(ctx context.Context) error { return run(ctx, record, b.Hold) },
		})
	}
	if err != nil {
		return err
	}
	turning, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	fmt.Println("at work")
	if err := s.Run(turning); err != nil {
		return err
	}
	closing, end := context.WithTimeout(ctx, closingLimit)
	defer end()
	if err := client.Close(closing); err != nil {
		return err
	}
	return record.Close()
}

// run is one run of the job.
func run(ctx context.Context, record *history.Recorder, takes time.Duration) error {
	at, _ := schedule.At(ctx)
	tick := history.Event{Kind: history.Note, Number: at.UnixMilli(), Text: RunBegan}
	record.Add(tick)
	pause(ctx, takes)
	if tick.Text = RunEnded; ctx.Err() != nil {
		tick.Text = RunCut
	}
	record.Add(tick)
	return ctx.Err()
}

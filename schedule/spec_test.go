package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/schedule"
)

// show writes ticks as their zone's clock shows them, with its offset.
func show(ticks []time.Time) []string {
	var all []string
	for _, at := range ticks {
		all = append(all, at.Format("02T15:04:05-07"))
	}
	return all
}

func TestTicksWhereTheClockIsSetForwardAndBack(t *testing.T) {
	t.Parallel()
	const berlin, york = "Europe/Berlin", "America/New_York"
	for _, c := range []struct {
		cron, zone string
		dst        schedule.DST
		after      string
		want       []string
	}{
		// 2026-03-29: 02:00 becomes 03:00. 2026-10-25: 03:00 becomes 02:00.
		{"30 2 * * *", berlin, schedule.DSTAuto, "2026-03-28T00:00:00Z", []string{"28T02:30:00+01", "29T03:00:00+02", "30T02:30:00+02"}},
		{"30 2 * * *", berlin, schedule.DSTOnce, "2026-10-24T00:00:00Z", []string{"24T02:30:00+02", "25T02:30:00+02", "26T02:30:00+01"}},
		{"30 2 * * *", berlin, schedule.DSTEach, "2026-03-28T00:00:00Z", []string{"28T02:30:00+01", "30T02:30:00+02"}},
		{"30 2 * * *", berlin, schedule.DSTEach, "2026-10-24T00:00:00Z", []string{"24T02:30:00+02", "25T02:30:00+02", "25T02:30:00+01", "26T02:30:00+01"}},
		{"*/30 2 * * *", berlin, schedule.DSTAuto, "2026-03-28T12:00:00Z", []string{"29T03:00:00+02", "30T02:00:00+02", "30T02:30:00+02"}},
		{"0 3 * * *", berlin, schedule.DSTAuto, "2026-03-28T12:00:00Z", []string{"29T03:00:00+02", "30T03:00:00+02"}},
		{"*/30 * * * *", berlin, schedule.DSTAuto, "2026-03-29T00:00:00Z", []string{"29T01:30:00+01", "29T03:00:00+02", "29T03:30:00+02"}},
		{"*/30 * * * *", berlin, schedule.DSTAuto, "2026-10-24T23:45:00Z", []string{
			"25T02:00:00+02", "25T02:30:00+02", "25T02:00:00+01", "25T02:30:00+01", "25T03:00:00+01",
		}},
		{"*/30 * * * *", berlin, schedule.DSTOnce, "2026-10-24T23:45:00Z", []string{"25T02:00:00+02", "25T02:30:00+02", "25T03:00:00+01"}},
		{"@hourly", berlin, schedule.DSTAuto, "2026-10-24T23:30:00Z", []string{"25T02:00:00+02", "25T02:00:00+01", "25T03:00:00+01"}},
		{"@daily", berlin, schedule.DSTAuto, "2026-10-24T12:00:00Z", []string{"25T00:00:00+02", "26T00:00:00+01"}},
		// 2026-03-08: 02:00 becomes 03:00. 2026-11-01: 02:00 becomes 01:00.
		{"15 2 * * *", york, schedule.DSTAuto, "2026-03-07T06:00:00Z", []string{"07T02:15:00-05", "08T03:00:00-04", "09T02:15:00-04"}},
		{"15 1 * * *", york, schedule.DSTAuto, "2026-10-31T04:30:00Z", []string{"31T01:15:00-04", "01T01:15:00-04", "02T01:15:00-05"}},
		{"15 1 * * *", york, schedule.DSTEach, "2026-10-31T04:30:00Z", []string{"31T01:15:00-04", "01T01:15:00-04", "01T01:15:00-05", "02T01:15:00-05"}},
		{"45 */2 * * *", york, schedule.DSTAuto, "2026-03-08T05:00:00Z", []string{"08T00:45:00-05", "08T04:45:00-04"}},
		// A zone that is set by half an hour, and one without changes.
		{"15 2 * * *", "Australia/Lord_Howe", schedule.DSTAuto, "2026-10-02T18:00:00Z", []string{"04T02:30:00+11", "05T02:15:00+11"}},
		{"30 2 29 2 *", "", schedule.DSTAuto, "2026-03-01T00:00:00Z", []string{"29T02:30:00+00", "29T02:30:00+00"}},
		{"*/20 30 2 * * *", berlin, schedule.DSTAuto, "2026-06-01T00:30:10Z", []string{"01T02:30:20+02", "01T02:30:40+02", "02T02:30:00+02"}},
	} {
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		got, err := schedule.Next(c.cron, c.zone, c.dst, after, len(c.want))
		if err != nil || !slices.Equal(show(got), c.want) {
			t.Errorf("%q in %q, rule %d, after %s:\n got %v, %v\nwant %v", c.cron, c.zone, c.dst, c.after, show(got), err, c.want)
		}
	}
}

// Over a whole year the ticks found one by one are those that a search of every minute
// finds.
func TestTicksOfAYearAreThoseTheClockShows(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
	var want []time.Time
	for at := start.Add(time.Minute); at.Before(start.AddDate(1, 0, 0)); at = at.Add(time.Minute) {
		if at.Hour()%2 == 0 && at.Minute() == 30 {
			want = append(want, at)
		}
	}
	got, err := schedule.Next("30 */2 * * *", "Europe/Berlin", schedule.DSTEach, start, len(want))
	if err != nil || !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("%d ticks, %v, want %d", len(got), err, len(want))
	}
}

func TestEveryCountsFrom1970(t *testing.T) {
	t.Parallel()
	got, err := schedule.Next("@every 90s", "", 0, time.Unix(100, 0), 2)
	if err != nil || got[0].Unix() != 180 || got[1].Unix() != 270 {
		t.Errorf("%v, %v", got, err)
	}
	got, err = schedule.Next("@every 90s", "", 0, time.Unix(-100, 0), 2)
	if err != nil || got[0].Unix() != -90 || got[1].Unix() != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestBadJobsAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	run := func(context.Context) error { return nil }
	for says, j := range map[string]schedule.Job{
		"name is empty":          {Run: run, Cron: "@daily"},
		"name has 300 bytes":     {Name: strings.Repeat("x", 300), Run: run, Cron: "@daily"},
		"UTF-8":                  {Name: "\xff", Run: run, Cron: "@daily"},
		"Run is nil":             {Name: "a", Cron: "@daily"},
		"0 of Cron, Every":       {Name: "a", Run: run},
		"2 of Cron, Every":       {Name: "a", Run: run, Cron: "@daily", Every: time.Second},
		"4 fields":               {Name: "a", Run: run, Cron: "* * * *"},
		"column 5, hour":         {Name: "a", Run: run, Cron: "*/5 25 * * *"},
		"column 1, second":       {Name: "a", Run: run, Cron: "61 * * * * *"},
		"column 12, day of week": {Name: "a", Run: run, Cron: "0  0  1 *  mo"},
		"column 1: there is":     {Name: "a", Run: run, Cron: "@dayly"},
		"column 8":               {Name: "a", Run: run, Cron: "@every 1ms"},
		"is blank":               {Name: "a", Run: run, Cron: "  "},
		"in Zone, not":           {Name: "a", Run: run, Cron: "TZ=UTC 0 0 * * *"},
		"no day that exists":     {Name: "a", Run: run, Cron: "0 0 31 2 *"},
		"time zone \"Mars\"":     {Name: "a", Run: run, Cron: "@daily", Zone: "Mars"},
		"time zone \"Local\"":    {Name: "a", Run: run, Cron: "@daily", Zone: "Local"},
		"Jitter is -1s":          {Name: "a", Run: run, Cron: "@daily", Jitter: -time.Second},
		"AtLeast 2s is more":     {Name: "a", Run: run, Cron: "@daily", AtLeast: 2 * time.Second, AtMost: time.Second},
		"AtMost is 1ms":          {Name: "a", Run: run, Cron: "@daily", AtMost: time.Millisecond},
		"both, or neither":       {Name: "a", Run: run, Cron: "@daily", CatchUp: schedule.CatchUp{Ticks: 1}},
		"CatchUp.Within is 721h": {Name: "a", Run: run, Cron: "@daily", CatchUp: schedule.CatchUp{Ticks: 1, Within: 721 * time.Hour}},
		"CatchUp.Ticks is -1":    {Name: "a", Run: run, Cron: "@daily", CatchUp: schedule.CatchUp{Ticks: -1}},
		"none of the constants":  {Name: "a", Run: run, Cron: "@daily", Overlap: 9},
		"Every is 5ns, at least": {Name: "a", Run: run, Every: 5},
		"After is 9ms, at least": {Name: "a", Run: run, After: 9 * time.Millisecond},
		"Every is -1s; it must":  {Name: "a", Run: run, Every: -time.Second},
		"Initial is for":         {Name: "a", Run: run, Cron: "@daily", Initial: time.Second},
		"are for jobs with Cron": {Name: "a", Run: run, Every: time.Second, Zone: "UTC"},
	} {
		s := scheduler(t)
		if err := s.Add(j); !errors.Is(err, hasp.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		if err := s.Run(t.Context()); !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("a job was added all the same: %v", err)
		}
	}
}

func scheduler(t *testing.T) *schedule.Scheduler {
	t.Helper()
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(t.Context())) })
	s, err := schedule.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASchedulerRunsOnceAndItsJobsHaveDifferentNames(t *testing.T) {
	t.Parallel()
	s := scheduler(t)
	job := schedule.Job{Name: "a", Run: func(context.Context) error { return nil }, Cron: "@daily"}
	if err := s.Add(job); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(job); !errors.Is(err, hasp.ErrInvalid) || !strings.Contains(err.Error(), `a job "a" already`) {
		t.Errorf("the same name: %v", err)
	}
	began := make(chan struct{}, 1)
	err := s.Add(schedule.Job{Name: "b", Cron: "@every 100ms", Run: func(context.Context) error {
		select {
		case began <- struct{}{}:
		default:
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-began
	if err := s.Run(t.Context()); !errors.Is(err, hasp.ErrInvalid) {
		t.Errorf("a second Run: %v", err)
	}
	if err := s.Add(schedule.Job{Name: "c", Cron: "@daily", Run: job.Run}); !errors.Is(err, hasp.ErrInvalid) {
		t.Errorf("Add while it runs: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Run(ctx); err != nil {
		t.Errorf("again, after its end: %v", err)
	}
}

func TestBadOptionsAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(t.Context())) })
	for i, o := range []*schedule.Options{{TTL: 1}, {TTL: 2 * time.Hour}, {Late: -1}, {Tolerance: 25 * time.Hour}} {
		if _, err := schedule.New(client, o); !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := schedule.New(nil, nil); !errors.Is(err, hasp.ErrInvalid) {
		t.Errorf("no client: %v", err)
	}
}

func Example() {
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())
	s, err := schedule.New(client, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	err = s.Add(schedule.Job{Name: "report", Cron: "@every 1s", Run: func(ctx context.Context) error {
		at, _ := schedule.At(ctx)
		fmt.Println("a report for a full second:", at.Nanosecond() == 0)
		stop()
		return nil
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Run(ctx))
	// Output:
	// a report for a full second: true
	// <nil>
}

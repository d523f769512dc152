// Package schedule runs jobs on a fleet of processes, over any store of hasp.
//
//	s, err := schedule.New(client, nil)
//	err = s.Add(schedule.Job{Name: "report", Cron: "0 3 * * *", Zone: "Europe/Berlin", Run: report})
//	err = s.Run(ctx) // in every process
//
// # Once per tick
//
// A job with [Job].Cron runs once for each time its specification names, in one of the
// processes. A tick is told apart by the job's name and its scheduled time, not by
// whether runs overlap: a run that is over before a slower clock has reached the tick is
// not repeated. For that the tick's key stays held after the run ([hasp.Lease.Keep]) for
// as long as another process could still come to it: [Options].Late, twice
// [Options].Tolerance and twice the TTL; or, with catching up, for [CatchUp].Within.
//
// A process that ends in the middle of a run leaves the tick to another one, which runs
// it when the lease has expired. So a job runs once where nobody dies, and at least once
// where somebody does. [At] answers a run's tick, which tells the work of one from that
// of another.
//
// # By the leader
//
// A job with [Job].Every or [Job].After runs in one process at a time, the leader of an
// election of the job's name, at a fixed rate or with a fixed delay between runs. When
// the leader changes, the new one begins with [Job].Initial anew.
//
// # Time zones
//
// Times of a specification are those of [Job].Zone's clock. [DST] says what becomes of
// times that the clock skips or shows twice when daylight saving begins or ends.
//
// # Clocks
//
// Ticks are found by the process's own clock, locks live by the store's. The clocks of
// the processes may differ by [Options].Tolerance.
package schedule

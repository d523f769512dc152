package sqllease

import "time"

// workerRest is how long a goroutine waits for the next call before it ends.
const workerRest = time.Second

// workers are goroutines that run calls and stay for the next one: SQL drivers need deep
// stacks, and a stack that has grown is worth keeping.
type workers struct {
	jobs chan func()
	done <-chan struct{} // the driver is closed
}

// run starts a job on a goroutine that rests, or on a new one.
func (w *workers) run(job func()) {
	select {
	case w.jobs <- job:
	default:
		go w.work(job)
	}
}

func (w *workers) work(job func()) {
	job()
	rest := time.NewTimer(workerRest)
	defer rest.Stop()
	for {
		select {
		case job = <-w.jobs:
			job()
			rest.Reset(workerRest)
		case <-rest.C:
			return
		case <-w.done:
			return
		}
	}
}

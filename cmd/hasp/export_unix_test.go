//go:build unix

package main

import "github.com/hasp-dev/hasp"

// Launch starts a command under a lease as run does, and answers the exit code of the error.
func Launch(lease *hasp.Lease, command ...string) (int, error) {
	a := &app{}
	r := &runner{app: a, job: job{keys: lease.Keys(), command: command}}
	_, err := r.launch("", lease)
	if err == nil {
		return 0, nil
	}
	return classify(err).code, err
}

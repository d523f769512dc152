// Package crew runs clients of hasp in processes of their own: workers, which use many
// locks at random and write a history, candidates, which write one of their terms in an
// election, counters, which have every grant of one lock written down, and puppets, which do
// what a test tells them. The processes are the test binary itself, which a variable of the
// environment makes one of them; its TestMain calls Main first.
package crew

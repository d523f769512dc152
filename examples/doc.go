// Package examples shows hasp at work, one scenario in each file. They run as tests and
// print what stands below them; nobody imports them. In a program of yours take the
// store you have in the place of memlease, which is in memory.
package examples

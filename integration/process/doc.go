// Package process starts the programs that the tests need, and ends, stops and resumes
// them by their own process id. A program dies with the process that started it,
// however that ends.
package process

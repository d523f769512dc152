package main

// Contend and Command are the program, for its tests.
var (
	Contend = contend
	Command = command
)

module github.com/hasp-dev/hasp/cmd/haspgen

go 1.25.0

require (
	github.com/hasp-dev/hasp v0.0.0
	golang.org/x/tools v0.49.0
)

require (
	golang.org/x/mod v0.39.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
)

replace github.com/hasp-dev/hasp => ../..

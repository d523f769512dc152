module github.com/hasp-dev/hasp/backend/mysqllease

go 1.25.0

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/hasp-dev/hasp v0.0.0
)

require filippo.io/edwards25519 v1.2.0 // indirect

replace github.com/hasp-dev/hasp => ../..

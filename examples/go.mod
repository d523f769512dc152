module github.com/hasp-dev/hasp/examples

go 1.25.0

require (
	github.com/hasp-dev/hasp v0.0.0
	github.com/hasp-dev/hasp/backend/sqlitelease v0.0.0-00010101000000-000000000000
	github.com/hasp-dev/hasp/schedule v0.0.0-00010101000000-000000000000
	modernc.org/sqlite v1.59.0
)

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/netresearch/go-cron v0.9.1 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	golang.org/x/sys v0.47.0 // indirect
	modernc.org/libc v1.75.7 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)

replace (
	github.com/hasp-dev/hasp => ../
	github.com/hasp-dev/hasp/backend/sqlitelease => ../backend/sqlitelease
	github.com/hasp-dev/hasp/schedule => ../schedule
)

module github.com/hasp-dev/hasp/schedule

go 1.25.0

require (
	github.com/hasp-dev/hasp v0.0.0
	github.com/netresearch/go-cron v0.9.1
)

replace github.com/hasp-dev/hasp => ../

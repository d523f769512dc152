module github.com/hasp-dev/hasp/cmd/hasp

go 1.25.0

require (
	github.com/hasp-dev/hasp v0.0.0
	github.com/hasp-dev/hasp/open v0.0.0-00010101000000-000000000000
	github.com/hasp-dev/hasp/schedule v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.14.1
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	golang.org/x/sys v0.47.0
	modernc.org/sqlite v1.59.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-sql-driver/mysql v1.10.1 // indirect
	github.com/go-viper/mapstructure/v2 v2.4.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hasp-dev/hasp/backend/mysqllease v0.0.0-00010101000000-000000000000 // indirect
	github.com/hasp-dev/hasp/backend/pglease v0.0.0-00010101000000-000000000000 // indirect
	github.com/hasp-dev/hasp/backend/redislease v0.0.0-00010101000000-000000000000 // indirect
	github.com/hasp-dev/hasp/backend/sqlitelease v0.0.0-00010101000000-000000000000 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.13.0 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/knadh/koanf/maps v0.1.2 // indirect
	github.com/knadh/koanf/parsers/toml/v2 v2.1.0 // indirect
	github.com/knadh/koanf/parsers/yaml v1.1.1 // indirect
	github.com/knadh/koanf/providers/env/v2 v2.0.2 // indirect
	github.com/knadh/koanf/providers/rawbytes v1.0.0 // indirect
	github.com/knadh/koanf/v2 v2.4.1 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/netresearch/go-cron v0.9.1 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	modernc.org/libc v1.75.7 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)

replace (
	github.com/hasp-dev/hasp => ../..
	github.com/hasp-dev/hasp/backend/mysqllease => ../../backend/mysqllease
	github.com/hasp-dev/hasp/backend/pglease => ../../backend/pglease
	github.com/hasp-dev/hasp/backend/redislease => ../../backend/redislease
	github.com/hasp-dev/hasp/backend/sqlitelease => ../../backend/sqlitelease
	github.com/hasp-dev/hasp/open => ../../open
	github.com/hasp-dev/hasp/schedule => ../../schedule
)

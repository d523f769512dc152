package open_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/open"
)

func TestAPostgresURLSaysWhereAndWho(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	t.Setenv("PGPASSWORD", "from-pg")
	for url, want := range map[string]string{
		"postgres://u@h/d":                                 "u:from-pg@h:5432/d",
		"postgres://u:pw@h:1/d":                            "u:pw@h:1/d",
		"postgres://u:%40%2F%27%5C%20p'@[::1]:7/my%20d'b":  `u:@/'\ p'@::1:7/my d'b`,
		"postgres://u:pw@a,b:2/d":                          "u:pw@a:5432/d",
		"postgres://u:pw@/d?host=/run/pg":                  "u:pw@/run/pg:5432/d",
		"postgres:///d?prefix=a_&host=/run/pg&pool_size=9": "",
	} {
		c, err := open.PostgresConfig(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		o := c.ConnConfig
		if got := fmt.Sprintf("%s:%s@%s:%d/%s", o.User, o.Password, o.Host, o.Port, o.Database); want != "" && got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
		if o.ConnectTimeout != 3*time.Second || o.RuntimeParams["application_name"] != "hasp" || c.MaxConns != 4 && !strings.Contains(url, "pool_size=9") {
			t.Errorf("%s: by default %s, %v, %d connections", url, o.ConnectTimeout, o.RuntimeParams, c.MaxConns)
		}
	}
	c, err := open.PostgresConfig("postgres://u:p@a,b/d?pool_size=9&dial_timeout=1s&application_name=x&sslmode=verify-full")
	if err != nil {
		t.Fatal(err)
	}
	if o := c.ConnConfig; c.MaxConns != 9 || o.ConnectTimeout != time.Second || o.RuntimeParams["application_name"] != "x" || o.TLSConfig == nil ||
		o.TLSConfig.ServerName != "a" || len(o.Fallbacks) != 1 || o.Fallbacks[0].Host != "b" || o.ValidateConnect == nil {
		t.Errorf("%+v", c)
	}
	if c, err := open.PostgresConfig("postgres://u:p@a/d?sslmode=disable"); err != nil || c.ConnConfig.TLSConfig != nil || c.ConnConfig.ValidateConnect != nil {
		t.Errorf("%+v (%v)", c, err)
	}
}

func TestAMySQLURLSaysWhereAndWho(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"mysql://u@h/d":                          "u:@tcp(h:3306)/d",
		"mysql://h/d":                            ":@tcp(h:3306)/d",
		"mariadb://u:p%2Fw@[::1]:7/my%20d":       "u:p/w@tcp([::1]:7)/my d",
		"mysql://u:pw@/d?socket=/run/mysqld.soc": "u:pw@unix(/run/mysqld.soc)/d",
	} {
		c, err := open.MySQLConfig(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := fmt.Sprintf("%s:%s@%s(%s)/%s", c.User, c.Passwd, c.Net, c.Addr, c.DBName); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
		if c.Timeout != 3*time.Second || c.TLS != nil {
			t.Errorf("%s: by default %s, %v", url, c.Timeout, c.TLS)
		}
	}
	c, err := open.MySQLConfig("mysql://u:p@h/d?dial_timeout=1s&tls=true&tls_server_name=n")
	if err != nil || c.Timeout != time.Second || c.TLS == nil || c.TLS.ServerName != "n" || c.TLS.InsecureSkipVerify {
		t.Errorf("%+v (%v)", c, err)
	}
}

func TestASQLStoreIsOpenedWithoutASoundAndPrintsItsSchema(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]struct{ kind, where, table string }{
		"postgres://u:hunter2@127.0.0.1:1/d":                        {"postgres", "postgres://127.0.0.1:1/d", `"hasp_claims"`},
		"postgresql://u:hunter2@a,b/d?prefix=my_&schema=s":          {"postgres", "postgresql://a:5432,b:5432/d", `"s"."my_claims"`},
		"mysql://u:hunter2@127.0.0.1:1/d":                           {"mysql", "mysql://127.0.0.1:1/d", "hasp_claims"},
		"mariadb://u:hunter2@127.0.0.1:1/d?prefix=my_&pool_size=50": {"mysql", "mariadb://127.0.0.1:1/d", "my_claims"},
	} {
		store, err := open.URL(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		schema, err := store.Schema()
		if err != nil || store.Kind() != want.kind || store.String() != want.where || !strings.Contains(schema, want.table) || !strings.Contains(schema, "CREATE") {
			t.Errorf("%s: kind %s, store %s, %v, schema %.300s", url, store.Kind(), store, err, schema)
		}
		if err := store.Close(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestWhatCannotBeRightInASQLURLIsInvalidAndSaysWhatIs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres:d":                    "postgres://HOST:5432",
		"postgres://":                   "must have a host",
		"postgres:///d":                 "must have a host",
		"postgres://h":                  "must name a database",
		"postgres://h/":                 "must name a database",
		"postgres://h/d?host=/run":      "in the place of a server",
		"postgres:///d?host=other":      "folder of a socket",
		"postgres://h/d?sslmode=on":     "one of: disable, allow",
		"postgres://h/d?sslmod=disable": "did you mean sslmode?",
		"postgres://h/d?sslrootcert=/n/ca&sslmode=verify-ca": "/n/ca",
		"postgres://h/d?connect_timeout=3":                   "dial_timeout",
		"postgres://h/d?password=x":                          "postgres://USER:PASSWORD@HOST/DATABASE",
		"postgres://h/d?statement_timeout=3":                 `"statement_timeout" is no parameter`,
		"postgres://h/d?target_session_attrs=x":              "one of: any, read-write",
		"postgres://h/d?application_name=":                   "not empty",
		"postgres://h/d?prefix=a-b":                          "Prefix",
		"postgres://h/d?schema=a-b":                          "Schema",
		"postgres://h/d?pool_size=0":                         "from 1 to 1000",
		"postgres://h:x/d":                                   "from 1 to 65535",
		"postgres://:a/b@h/d":                                "%2F",
		"mysql://h":                                          "must name a database",
		"mysql://a,b/d":                                      "names one server",
		"mysql:///d":                                         "must have a host",
		"mysql://h/d?socket=/run/s":                          "in the place of a server",
		"mysql:///d?socket=s":                                "in the place of a server",
		"mysql://h/d?parseTime=true":                         "by itself",
		"mysql://h/d?tls=preferred":                          "one of: false, true",
		"mysql://h/d?tls_ca=/x":                              "add tls=true",
		"mysql://h/d?tls=true&tls_ca=/n/ca":                  "/n/ca",
		"mysql://h/d?timeout=3s":                             "dial_timeout",
		"mysql://h/d?prefix=a-b":                             "Prefix",
		"mysql://h/d?pool_size=x":                            "from 1 to 1000",
		"mysql://tcp(h:1)/d":                                 "from 1 to 65535",
		"mysqli://h/d":                                       "did you mean mysql?",
		"psql://h/d":                                         `"psql" is no scheme`,
	} {
		store, err := open.URL(url, nil)
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", url, err, want)
		}
		if err == nil {
			_ = store.Close()
		}
	}
}

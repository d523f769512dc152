package open_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/open"
)

func TestARedisURLSaysWhereAndWho(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url                   string
		addrs, user, password string
		db                    int
		master, where         string
	}{
		{"redis://h", "h:6379", "", "", 0, "", "redis://h:6379/0"},
		{"redis://h/", "h:6379", "", "", 0, "", "redis://h:6379/0"},
		{"REDIS://h:1/2", "h:1", "", "", 2, "", "redis://h:1/2"},
		{"redis://h?db=3", "h:6379", "", "", 3, "", "redis://h:6379/3"},
		{"redis://:pw@10.0.0.1:7000", "10.0.0.1:7000", "", "pw", 0, "", "redis://10.0.0.1:7000/0"},
		{"redis://u:pw@[::1]:7000", "[::1]:7000", "u", "pw", 0, "", "redis://[::1]:7000/0"},
		{"redis://u:pw@[fe80::1]", "[fe80::1]:6379", "u", "pw", 0, "", "redis://[fe80::1]:6379/0"},
		{"redis://a%3Ab:%2F%3F%23%40%25:@c,d@h_1.x-y", "h_1.x-y:6379", "a:b", "/?#@%:@c,d", 0, "", "redis://h_1.x-y:6379/0"},
		{"redis://:@h", "h:6379", "", "", 0, "", "redis://h:6379/0"},
		{"rediss://u:pw@h/4", "h:6379", "u", "pw", 4, "", "rediss://h:6379/4"},
		{"redis+sentinel://u:pw@a,b:2/my%20master?db=5", "a:26379,b:2", "u", "pw", 5, "my master", "redis+sentinel://a:26379,b:2/my master"},
		{"redis+cluster://u:pw@a,b:2", "a:6379,b:2", "u", "pw", 0, "", "redis+cluster://a:6379,b:2"},
	} {
		o, _, err := open.RedisOptions(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if got := strings.Join(o.Addrs, ","); got != c.addrs || o.Username != c.user || o.Password != c.password || o.DB != c.db || o.MasterName != c.master {
			t.Errorf("%s: servers %s, user %q, password %q, db %d, master %q", c.url, got, o.Username, o.Password, o.DB, o.MasterName)
		}
		store, err := open.URL(c.url, nil)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		if store.Kind() != "redis" || store.String() != c.where {
			t.Errorf("%s: kind %s, store %s, want %s", c.url, store.Kind(), store, c.where)
		}
		if schema, err := store.Schema(); schema != "" || err != nil || store.Migrate(t.Context()) != nil {
			t.Errorf("%s: schema %q (%v)", c.url, schema, err)
		}
		if err := store.Close(); err != nil {
			t.Errorf("%s: %v", c.url, err)
		}
	}
}

func TestTheParametersOfARedisURLArriveAtClientAndDriver(t *testing.T) {
	t.Parallel()
	o, lease, err := open.RedisOptions("redis+sentinel://h/m?pool_size=7&dial_timeout=1s&read_timeout=20ms&write_timeout=2m&sentinel_user=su&sentinel_password=sp" +
		"&slot=s&replicas=2&replica_timeout=90ms&allow_eviction=true&tls=true&tls_server_name=n")
	if err != nil {
		t.Fatal(err)
	}
	if o.PoolSize != 7 || o.DialTimeout != time.Second || o.ReadTimeout != 20*time.Millisecond || o.WriteTimeout != 2*time.Minute ||
		o.SentinelUsername != "su" || o.SentinelPassword != "sp" || o.TLSConfig == nil || o.TLSConfig.ServerName != "n" || o.TLSConfig.InsecureSkipVerify {
		t.Errorf("client: %+v", o)
	}
	if lease.Slot != "s" || lease.Replicas != 2 || lease.ReplicaTimeout != 90*time.Millisecond || !lease.AllowEviction {
		t.Errorf("driver: %+v", lease)
	}
	o, lease, err = open.RedisOptions("redis://h")
	if err != nil {
		t.Fatal(err)
	}
	if o.PoolSize != 10 || o.DialTimeout != 3*time.Second || o.ReadTimeout != 3*time.Second || o.WriteTimeout != 3*time.Second || o.TLSConfig != nil {
		t.Errorf("client by default: %+v", o)
	}
	if lease.Slot != "" || lease.Replicas != 0 || lease.ReplicaTimeout != 0 || lease.AllowEviction {
		t.Errorf("driver by default: %+v", lease)
	}
}

func TestTLSIsOnWhereItIsAskedForAndVerifiesUnlessToldByName(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]struct{ on, insecure bool }{
		"redis://h":  {},
		"rediss://h": {true, false},
		"rediss://h?tls_insecure_skip_verify=false":        {true, false},
		"rediss://h?tls_insecure_skip_verify=true":         {true, true},
		"redis+sentinel://h/m":                             {},
		"redis+sentinel://h/m?tls=true":                    {true, false},
		"redis+cluster://h?tls=false":                      {},
		"redis+cluster://h?tls=true":                       {true, false},
		"redis+cluster://h?tls=true&tls_server_name=other": {true, false},
	} {
		o, _, err := open.RedisOptions(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if on := o.TLSConfig != nil; on != want.on || on && o.TLSConfig.InsecureSkipVerify != want.insecure {
			t.Errorf("%s: TLS %t, want %+v", url, on, want)
		}
	}
}

func TestWhatCannotBeRightInARedisURLIsInvalidAndSaysWhatIs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis:h":                                "begins with redis://",
		"redis:":                                 "redis://HOST:6379",
		"redis://":                               "server 1 in the redis URL must have a host",
		"redis:///0":                             "must have a host",
		"redis://:6379":                          "must have a host",
		"redis://u:p@":                           "must have a host",
		"redis://h:":                             "from 1 to 65535",
		"redis://h:0":                            "from 1 to 65535",
		"redis://h:65536":                        "from 1 to 65535",
		"redis://h:x":                            "from 1 to 65535",
		"redis://h h":                            "must have a host",
		"redis://::1":                            "must have a host",
		"redis://[::1":                           "must have a host",
		"redis://[h]":                            "must have a host",
		"redis://a,b":                            "redis+cluster://HOST,HOST",
		"redis://u@h":                            "a user without a password",
		"redis://u:@h":                           "a user without a password",
		"redis://:%zz@h":                         "%25",
		"redis://:a/b@h":                         "%2F",
		"redis://:a?b@h":                         "%3F",
		"redis://:a#b@h":                         "%23",
		"redis://h#x":                            "%23",
		"redis://h/x":                            "such as redis://HOST:6379/0",
		"redis://h/-1":                           "such as redis://HOST:6379/0",
		"redis://h/0/1":                          "such as redis://HOST:6379/0",
		"redis://h/%zz":                          "%25",
		"redis://h/1?db=1":                       "both name a database",
		"redis://h?db=x":                         `"db" of the URL must be a number`,
		"redis://h?db=-1":                        `"db" of the URL must be a number`,
		"redis://h?pool_size=0":                  "a number from 1 to 1000",
		"redis://h?poolsize=5":                   "did you mean pool_size?",
		"redis://h?dial_timeout=3":               "a time with its unit from 1ms to 1h",
		"redis://h?read_timeout=0s":              "a time with its unit from 1ms to 1h",
		"redis://h?write_timeout=-1s":            "a time with its unit from 1ms to 1h",
		"redis://h?timeout=3s":                   "dial_timeout, read_timeout",
		"redis://h?prefix=a:":                    "hasp.Options.Prefix",
		"redis://h?password=x":                   "redis://USER:PASSWORD@HOST",
		"redis://h?tls=true":                     "TLS is rediss://",
		"redis://h?tls_ca=/ca":                   "write rediss://",
		"redis+cluster://h?tls_ca=/ca":           "add tls=true",
		"redis://h?sentinel_password=x":          `"sentinel_password" is no parameter`,
		"redis://h?slot=":                        "not empty",
		"redis://h?slot=a}b":                     "closing brace",
		"redis://h?replicas=x":                   "a number from 0 to 100",
		"redis://h?allow_eviction=yes":           "one of: false, true",
		"rediss://h?tls_ca=/nonexistent/ca":      "tls_ca of the URL: open /nonexistent/ca",
		"rediss://h?tls_ca=/dev/null":            "no certificate in PEM",
		"rediss://h?tls_cert=/c":                 "give both",
		"rediss://h?tls_key=/c":                  "give both",
		"rediss://h?tls_cert=/n/c&tls_key=/n/k":  "tls_cert and tls_key of the URL: open /n/c",
		"rediss://h?tls_insecure_skip_verify=1":  "one of: false, true",
		"rediss://h?skip_verify=true":            "tls_insecure_skip_verify",
		"redis+sentinel://h":                     "must name the master",
		"redis+sentinel://h/":                    "must name the master",
		"redis+sentinel://h?master=m":            "redis+sentinel://HOST/NAME",
		"redis+sentinel://h/m?sentinel_user=u":   "needs sentinel_password",
		"redis+sentinel://h,/m":                  "server 2",
		"redis+cluster://h/0":                    "one database only",
		"redis+cluster://h?db=0":                 `"db" is no parameter`,
		"redis+cluster://h?addr=x":               "HOST:PORT,HOST:PORT",
		"redis+cluster://h?replica_timeout=soon": "replica_timeout",
		"rediss://h?tls_insecure_skip_verify=true&tls_ca=/dev/null": "no meaning beside it",
		"redis-sentinel://h/m": "did you mean redis+sentinel?",
		"redis-cluster://h":    "did you mean redis+cluster?",
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

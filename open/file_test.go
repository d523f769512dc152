package open_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/open"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// file opens a file that must be right.
func file(t *testing.T, path string) *open.Store {
	t.Helper()
	s, err := open.File(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func redisOptions(t *testing.T, path string) *redis.UniversalOptions {
	t.Helper()
	o, err := open.FileRedisOptions(path)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestURLAndFilesAndEnvironmentMakeTheSameDriver(t *testing.T) {
	const where = "redis://cache:6380/2?pool_size=7&dial_timeout=1500ms"
	texts := map[string]string{
		"a.toml": "prefix = \"app:\"\nttl = \"15s\"\ngrace = 2000\nwait = \"0\"\nurl = \"" + where + "\"\n",
		"b.yaml": "prefix: 'app:'\nttl: 15s\ngrace: 2000\nwait: 0\nurl: " + where + "\n",
		"c.conf": "prefix = \"app:\"\nttl = 15000\ngrace = \"2s\"\nwait = 0\n[redis]\nhost = \"cache\"\nport = 6380\ndb = 2\npoolSize = 7\ntimeout = 1500\n",
		"d.yml":  "prefix: 'app:'\nttl: 15000\ngrace: 2s\nwait: 0s\nredis: {host: cache, port: 6380, db: 2, poolSize: 7, timeout: 1500}\n",
		"e.yml":  "prefix: 'app:'\nttl: 15000\ngrace: 2s\nwait: 0s\nredis.host: cache\nredis.port: 6380\nredis.db: 2\nredis.poolSize: 7\nredis.timeout: 1500\n",
	}
	byURL, err := open.URL(where, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer byURL.Close()
	want := open.Settings{Prefix: "app:", TTL: 15 * time.Second, Grace: 2 * time.Second, Wait: -1}
	same, _, err := open.RedisOptions(where)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name, path string) {
		t.Helper()
		s, got := file(t, path), redisOptions(t, path)
		if s.String() != byURL.String() || s.Kind() != byURL.Kind() || s.Settings() != want {
			t.Errorf("%s: %s with %+v, want %s with %+v", name, s, s.Settings(), byURL, want)
		}
		if !reflect.DeepEqual(got, same) || got.DialTimeout != 1500*time.Millisecond {
			t.Errorf("%s: the client has %+v", name, got)
		}
	}
	for name, text := range texts {
		check(name, write(t, name, text))
	}
	for name, value := range map[string]string{
		"HASP_PREFIX": "app:", "HASP_TTL": "15s", "HASP_GRACE": "2s", "HASP_WAIT": "0", "HASP_REDIS_HOST": "cache",
		"HASP_REDIS_PORT": "6380", "HASP_REDIS_DB": "2", "HASP_REDIS_POOL_SIZE": "7", "HASP_REDIS_TIMEOUT": "1500", "HASP_REDIS_PASSWORD": "",
	} {
		t.Setenv(name, value)
	}
	check("environment over keys", write(t, "f.toml", "ttl = 1\nprefix = \"x\"\n[redis]\nport = 1\n"))
	check("environment alone", write(t, "g.toml", ""))
	t.Setenv("HASP_REDIS_PORT", "")
	t.Setenv(open.EnvName, where)
	check("URL in the environment", write(t, "h.toml", "url = \"redis://other\"\n"))
	check("URL over a section", write(t, "i.toml", "[redis]\nhost = \"other\"\nport = 1\n"))
}

func TestASectionRedisHasItsDefaults(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"a.toml": "[redis]\n", "b.yaml": "redis:\n", "c.yaml": "redis: {keyPrefix: neton}\n"} {
		path := write(t, name, text)
		s, o := file(t, path), redisOptions(t, path)
		if o.Addrs[0] != "localhost:6379" || o.DB != 0 || o.Password != "" || o.PoolSize != 10 || o.DialTimeout != 3*time.Second {
			t.Errorf("%s: the client has %+v", name, o)
		}
		if got := s.Settings(); got != (open.Settings{Prefix: "neton:lock:"}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	path := write(t, "d.yaml", "redis: {keyPrefix: '', host: '[::1]', password: 'p@ss: /?#%+ö'}\n")
	s := file(t, path)
	if o := redisOptions(t, path); s.Settings().Prefix != "lock:" || o.Addrs[0] != "[::1]:6379" || o.Password != "p@ss: /?#%+ö" {
		t.Errorf("%+v with %+v", s.Settings(), o.Addrs)
	}
	if strings.Contains(s.String(), "p@ss") {
		t.Error("the store says its password")
	}
}

func TestSettingsOfSimba(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]open.Settings{
		"url: redis://h\nsimba: {redis: {enabled: true}}":          {TTL: 10 * time.Second, Grace: 6 * time.Second},
		"url: redis://h\nsimba: {redis: {ttl: 20s}}":               {TTL: 20 * time.Second, Grace: 6 * time.Second},
		"url: redis://h\nsimba.redis.transition: 3s":               {TTL: 10 * time.Second, Grace: 3 * time.Second},
		"url: redis://h\nttl: 5s\nsimba: {enabled: true, redis: }": {TTL: 5 * time.Second, Grace: 6 * time.Second},
		"url: redis://h\nsimba: {enabled: true}":                   {},
	} {
		if got := file(t, write(t, "a.yaml", text)).Settings(); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestAFileThatCannotBeRightSaysWhyAndNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	faults := map[string]map[string]string{
		"a.toml": {
			"":                                                      "no store",
			"[redis]\nhots = \"s3cret\"":                            `"redis.hots" is no key of such a file; did you mean redis.host?`,
			"[redis]\npool_size = 5":                                "did you mean redis.poolSize?",
			"[redis]\nPassword = \"s3cret\"":                        "did you mean redis.password?",
			"[redis]\nkeyprefix = \"x\"":                            "did you mean redis.keyPrefix?",
			"password = \"s3cret\"":                                 "did you mean redis.password?",
			"[simba.redis]\ntransitoin = \"6s\"":                    "did you mean simba.redis.transition?",
			"colour = \"s3cret\"":                                   "the keys are url, prefix, ttl",
			"\"s3cret@host\" = 1":                                   "a key that is no word",
			"[redis]\nport = \"s3cret\"":                            "redis.port, or HASP_REDIS_PORT, must be a whole number from 1 to 65535",
			"[redis]\nport = 6379.5":                                "must be a whole number",
			"[redis]\nport = 0":                                     "must be a whole number",
			"[redis]\ndb = -1":                                      "redis.db",
			"[redis]\npoolSize = 0":                                 "redis.poolSize",
			"[redis]\npassword = 12345":                             "redis.password, or HASP_REDIS_PASSWORD, must be a text",
			"[redis]\nhost = \"u:s3cret@host\"":                     "redis.host must be",
			"[redis]\ntimeout = \"s3cret\"":                         "redis.timeout",
			"[redis]\ntimeout = 0":                                  "redis.timeout",
			"[redis]\ntimeout = \"2h\"":                             "at most an hour",
			"redis = \"s3cret\"":                                    "redis must be a section",
			"url = 5":                                               "url, or HASP_URL, must be a text",
			"url = \"redis://:s3cret@h:x\"":                         "the port of server 1",
			"url = \"redis://h\"\n[redis]\ndb = 1":                  "both name a store",
			"url = \"redis://h\"\nttl = \"-1s\"":                    "ttl, or HASP_TTL, must be a time",
			"url = \"redis://h\"\nttl = 0":                          "ttl, or HASP_TTL, must be a time",
			"url = \"redis://h\"\nttl = true":                       "ttl, or HASP_TTL, must be a time",
			"url = \"redis://h\"\nwait = \"soon\"":                  "wait, or HASP_WAIT, must be a time",
			"ttl = 1\n[redis]\npassword = \"s3cret":                 "line 3, column",
			"[redis]\npassword = s3cret":                            "line 2, column",
			"[redis]\npassword = \"s3cret\"\npassword = \"s3cret\"": "line ",
			"prefix = \"a\"\n[redis]\nkeyPrefix = \"b\"":            "prefix and redis.keyPrefix say the same",
			"ttl = 1\nurl = \"redis://h\"\n[simba.redis]\nttl = 1":  "ttl and simba.redis.ttl say the same",
			"url = \"redis://h\"\n[simba.redis]\nenabled = false":   "remove the section simba.redis",
			"url = \"redis://h\"\n[simba]\nenabled = false":         "remove the section simba",
			"url = \"redis://h\"\n[simba.redis]\nenabled = \"no\"":  "must be true or false",
			"[redis]\nport = 0\ndb = \"x\"\nhots = 1":               "redis.db",
		},
		"a.yaml": {
			"redis: {password: s3cret":               "line 1",
			"redis:\n  password: s3cret\n bad: x":    "line ",
			"s3cret":                                 "line 1",
			"- s3cret":                               "line 1",
			"redis: s3cret":                          "redis must be a section",
			"redis: {port: 1}\nredis.port: 2":        "a key stands there twice",
			"redis: {password: s3cret, password: x}": "line 1",
			"redis: {1: s3cret}":                     "redis.1",
			"redis: {password: }":                    "redis.password",
		},
		"a.json": {"{}": "is TOML (.toml, .conf) or YAML"},
	}
	for name, texts := range faults {
		for text, says := range texts {
			s, err := open.File(write(t, name, text), nil)
			if s != nil || !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v, want %q and no secret", text, err, says)
			}
		}
	}
	if _, err := open.File(filepath.Join(t.TempDir(), "none.toml"), nil); !errors.Is(err, driver.ErrInvalid) || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := open.File(write(t, "long.toml", strings.Repeat("#", 1<<20+1)), nil); !errors.Is(err, driver.ErrInvalid) {
		t.Error(err)
	}
}

func TestVariablesOfTheWrongTypeAreRefused(t *testing.T) {
	for name, value := range map[string]string{"HASP_REDIS_PORT": "s3cret", "HASP_TTL": "s3cret", "HASP_SIMBA_REDIS_ENABLED": "s3cret"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := open.File(write(t, "a.toml", "[redis]\n"), nil)
			if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), value) {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzAFileOpensOrIsRefused(f *testing.F) {
	f.Add("[redis]\npassword = \"x\"\nport = 1", true)
	f.Add("redis: {password: x, port: y}", false)
	f.Add("a: &a [*a]", false)
	f.Fuzz(func(t *testing.T, text string, toml bool) {
		name := "a.yaml"
		if toml {
			name = "a.toml"
		}
		s, err := open.File(write(t, name, text), nil)
		switch {
		case err == nil:
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, driver.ErrInvalid) && !errors.Is(err, driver.ErrRefused):
			t.Errorf("%v", err)
		}
	})
}

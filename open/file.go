package open

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	gotoml "github.com/pelletier/go-toml/v2"

	"github.com/hasp-dev/hasp/driver"
)

// maxFile is more than any such file has.
const maxFile = 1 << 20

// File opens the store that a file of settings names, with nil for the default options.
// [Store.Settings] answers the rest of it:
//
//	store, err := open.File("/etc/app/locks.toml", nil)
//	s := store.Settings()
//	client, err := hasp.New(store.Driver(), &hasp.Options{
//		Prefix: s.Prefix, Lock: hasp.LockOptions{TTL: s.TTL, Grace: s.Grace, Wait: s.Wait},
//	})
//
// The file is TOML (.toml, .conf) or YAML (.yaml, .yml). Each key may be overridden by a
// variable of the environment that is not empty; HASP_URL also stands in for the servers of
// a section redis. What is unknown, of the wrong type or said twice is driver.ErrInvalid, and
// so is a variable HASP_… that is none of these but almost; no message shows a value. The
// keys are in docs/stores.md.
func File(path string, opts *Options) (*Store, error) {
	c, err := readFile(path)
	if err != nil {
		return nil, err
	}
	raw, s := c.store(), c.client()
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	store, err := URL(raw, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	store.settings = s
	return store, nil
}

// Settings are what the file says beside the store; zero for a store that was opened by
// a URL.
func (s *Store) Settings() Settings { return s.settings }

// configuration is a file, with the environment over it. All that is wrong is collected.
type configuration struct {
	path   string
	values map[string]any // by key, such as redis.port
	errs   []error
}

// readFile reads a file and the environment.
func readFile(path string) (*configuration, error) {
	var parser koanf.Parser
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml", ".conf":
		parser = toml.Parser()
	case ".yaml", ".yml":
		parser = yaml.Parser()
	default:
		return nil, invalidf("%s: a file of settings is TOML (.toml, .conf) or YAML (.yaml, .yml)", path)
	}
	content, err := content(path)
	if err != nil {
		return nil, err
	}
	k := koanf.New(".")
	if err := k.Load(rawbytes.Provider(content), parser); err != nil {
		return nil, invalidf("%s: %s", path, syntax(err))
	}
	c := &configuration{path: path}
	c.checkKeys(k)
	c.checkEnvironment(os.Environ())
	byFile := k.Exists(keyURL)
	if err := k.Load(env.Provider(".", env.Opt{Prefix: envPrefix, TransformFunc: override}), nil); err != nil {
		return nil, invalidf("%s: the environment cannot be laid over it", path)
	}
	c.values = k.All()
	if byFile && os.Getenv(EnvName) == "" && c.hasSection("redis") {
		c.wrong("url and the section redis both name a store; keep one of them")
	}
	return c, nil
}

// content reads the file, as far as files of settings go.
func content(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: the file of settings: %w", driver.ErrInvalid, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%w: the file of settings: %w", driver.ErrInvalid, err)
	}
	if len(text) > maxFile {
		return nil, invalidf("%s: a file of settings has at most %d bytes", path, maxFile)
	}
	return text, nil
}

// syntax says where a file is broken, and no more: what the parsers say may repeat what
// stands there.
func syntax(err error) string {
	if broken := (*gotoml.DecodeError)(nil); errors.As(err, &broken) {
		line, column := broken.Position()
		return fmt.Sprintf("line %d, column %d is no TOML, or says again what was said before", line, column)
	}
	if line := regexp.MustCompile(`line \d+`).FindString(err.Error()); line != "" {
		return line + ", or one near it, is no YAML of keys and values, or says again what was said before"
	}
	return "it is not keys and values"
}

// override finds the key that a variable is for. A text that is no number or truth stays
// one, to be refused.
func override(name, value string) (string, any) {
	for _, s := range settings() {
		if s.env != name || !meant(name, value) {
			continue
		}
		switch s.kind {
		case whole:
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				return s.key, n
			}
		case truth:
			if b, err := strconv.ParseBool(value); err == nil {
				return s.key, b
			}
		case text, span:
		}
		return s.key, value
	}
	return "", nil
}

// checkKeys refuses keys that there are not, and those that stand twice: nested and with
// a dot.
func (c *configuration) checkKeys(k *koanf.Koanf) {
	flat := k.All()
	if leaves(k.Raw()) != len(flat) {
		c.wrong("a key stands there twice, once with a dot in its name")
	}
	known := names()
	for key, value := range flat {
		empty, isMap := value.(map[string]any)
		if slices.Contains(known, key) || slices.Contains(sections(), key) && (value == nil || isMap && len(empty) == 0) {
			continue
		}
		switch {
		case slices.Contains(sections(), key):
			c.wrong("%s must be a section with keys of its own", key)
		case !regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`).MatchString(key):
			c.wrong("a key that is no word is unknown; the keys are %s", strings.Join(known, ", "))
		default:
			c.wrong("%q is no key of such a file%s", key, nearest(key))
		}
	}
}

func leaves(m map[string]any) int {
	n := 0
	for _, value := range m {
		if inner, ok := value.(map[string]any); ok && len(inner) > 0 {
			n += leaves(inner)
		} else {
			n++
		}
	}
	return n
}

// store is the URL of the store.
func (c *configuration) store() string {
	host, okHost := hostName(c.text("redis.host", "localhost"))
	if !okHost {
		c.wrong("redis.host must be a name, an IPv4 address, or an IPv6 address in brackets")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	rest := "//"
	if password := c.text("redis.password", ""); password != "" {
		rest += ":" + strings.ReplaceAll(url.QueryEscape(password), "+", "%20") + "@"
	}
	rest += host + ":" + strconv.Itoa(c.number("redis.port", 6379, 1, math.MaxUint16)) +
		"/" + strconv.Itoa(c.number("redis.db", 0, 0, math.MaxInt32)) +
		"?pool_size=" + strconv.Itoa(c.number("redis.poolSize", redisPool, 1, redisPoolMost)) +
		"&dial_timeout=" + c.connecting().String()
	switch {
	case c.has(keyURL):
		return c.text(keyURL, "")
	case c.hasSection("redis"):
		return redisScheme + ":" + rest
	}
	c.wrong("no store: there is neither url nor a section redis, and %s is not set", EnvName)
	return ""
}

// connecting is how long a connection may take to be made.
func (c *configuration) connecting() time.Duration {
	d := c.time("redis.timeout", patience, time.Millisecond)
	if d > time.Hour {
		c.want("redis.timeout", "at most an hour")
	}
	return d
}

// wrong notes what is wrong.
func (c *configuration) wrong(format string, args ...any) {
	c.errs = append(c.errs, invalidf("%s: %s", c.path, fmt.Sprintf(format, args...)))
}

// want notes what a key must be.
func (c *configuration) want(key, what string) {
	i := slices.IndexFunc(settings(), func(s setting) bool { return s.key == key })
	c.wrong("%s, or %s, must be %s", key, settings()[i].env, what)
}

func (c *configuration) has(key string) bool { _, ok := c.values[key]; return ok }

// hasSection says whether a section is there, be it empty.
func (c *configuration) hasSection(name string) bool {
	for key := range c.values {
		if key == name || strings.HasPrefix(key, name+".") {
			return true
		}
	}
	return false
}

func (c *configuration) text(key, otherwise string) string {
	if !c.has(key) {
		return otherwise
	}
	value, ok := c.values[key].(string)
	if !ok || strings.ContainsRune(value, 0) {
		c.want(key, "a text; numbers and the like stand in quotes")
	}
	return value
}

func (c *configuration) truth(key string, otherwise bool) bool {
	if !c.has(key) {
		return otherwise
	}
	value, ok := c.values[key].(bool)
	if !ok {
		c.want(key, "true or false")
	}
	return value || !ok
}

// integer is a value that is a whole number.
func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

func (c *configuration) number(key string, otherwise, low, high int) int {
	if !c.has(key) {
		return otherwise
	}
	n, ok := integer(c.values[key])
	if !ok || n < int64(low) || n > int64(high) {
		c.want(key, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	return int(n)
}

// time is a time with its unit, or a number of milliseconds.
func (c *configuration) time(key string, otherwise, low time.Duration) time.Duration {
	if !c.has(key) {
		return otherwise
	}
	const most = 365 * 24 * time.Hour
	n, ok := integer(c.values[key])
	if said, isText := c.values[key].(string); isText {
		var err error
		if n, err = strconv.ParseInt(said, 10, 64); err != nil {
			d, err := time.ParseDuration(said)
			if err != nil || d < low || d > most {
				c.want(key, "a time such as 500ms or 10s, or a number of milliseconds")
			}
			return d
		}
		ok = true
	}
	if !ok || n < low.Milliseconds() || n > most.Milliseconds() {
		c.want(key, "a time such as 500ms or 10s, or a number of milliseconds")
		return otherwise
	}
	return time.Duration(n) * time.Millisecond
}

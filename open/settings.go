package open

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Settings are what a file says for the client: the prefix and the lock options of
// hasp.Options. Zero is that package's default, and Wait is negative where nobody waits.
type Settings struct {
	Prefix           string
	TTL, Grace, Wait time.Duration
}

// kind is what a key of the file holds.
type kind uint8

const (
	text kind = iota
	whole
	span
	truth
)

// setting is a key of the file, with the variable that overrides it.
type setting struct {
	key, env string
	kind     kind
}

// Keys of the file that are named in several places.
const (
	keyURL      = "url"
	keyPrefix   = "prefix"
	redisPrefix = "redis.keyPrefix"
	simbaTTL    = "simba.redis.ttl"
	simbaGrace  = "simba.redis.transition"
)

// settings are all keys of the file.
func settings() []setting {
	return []setting{
		{keyURL, EnvName, text},
		{keyPrefix, "HASP_PREFIX", text},
		{"ttl", "HASP_TTL", span},
		{"grace", "HASP_GRACE", span},
		{"wait", "HASP_WAIT", span},
		{"redis.host", "HASP_REDIS_HOST", text},
		{"redis.port", "HASP_REDIS_PORT", whole},
		{"redis.db", "HASP_REDIS_DB", whole},
		{redisPrefix, "HASP_REDIS_KEY_PREFIX", text},
		{"redis.password", "HASP_REDIS_PASSWORD", text},
		{"redis.poolSize", "HASP_REDIS_POOL_SIZE", whole},
		{"redis.timeout", "HASP_REDIS_TIMEOUT", span},
		{"simba.enabled", "HASP_SIMBA_ENABLED", truth},
		{"simba.redis.enabled", "HASP_SIMBA_REDIS_ENABLED", truth},
		{simbaTTL, "HASP_SIMBA_REDIS_TTL", span},
		{simbaGrace, "HASP_SIMBA_REDIS_TRANSITION", span},
	}
}

// sections are the keys that hold others.
func sections() []string { return []string{"redis", "simba", "simba.redis"} }

// names are the keys of settings.
func names() []string {
	var all []string
	for _, s := range settings() {
		all = append(all, s.key)
	}
	return all
}

// client answers what is for hasp.Options, and says what does not fit together.
func (c *configuration) client() Settings {
	s := Settings{
		TTL:   c.time("ttl", 0, time.Millisecond),
		Grace: c.time("grace", 0, 0),
		Wait:  c.time("wait", 0, 0),
	}
	if c.has("wait") && s.Wait == 0 {
		s.Wait = -1
	}
	s.Prefix = c.prefix()
	c.simba(&s)
	return s
}

// prefix is that of all keys: in a section redis it is one word, behind which locks have
// a name space of their own.
func (c *configuration) prefix() string {
	prefix := c.text(keyPrefix, "")
	switch {
	case !c.hasSection("redis") || c.has(keyPrefix) && !c.has(redisPrefix):
		return prefix
	case c.has(keyPrefix):
		c.wrong("%s and %s say the same in two ways; keep one of them", keyPrefix, redisPrefix)
	}
	space := c.text(redisPrefix, "neton")
	if space == "" {
		return "lock:"
	}
	return space + ":lock:"
}

// simba reads what programs that used Simba have. Its switches are not taken over: who
// does not want a store does not open it.
func (c *configuration) simba(s *Settings) {
	for key, section := range map[string]string{"simba.enabled": "simba", "simba.redis.enabled": "simba.redis"} {
		if !c.truth(key, true) {
			c.wrong("%s is false, but nothing is switched off here; remove the section %s", key, section)
		}
	}
	if !c.hasSection("simba.redis") {
		return
	}
	for key, ours := range map[string]string{simbaTTL: "ttl", simbaGrace: "grace"} {
		if c.has(key) && c.has(ours) {
			c.wrong("%s and %s say the same in two ways; keep one of them", ours, key)
		}
	}
	if !c.has("ttl") {
		s.TTL = c.time(simbaTTL, 10*time.Second, time.Millisecond)
	}
	if !c.has("grace") {
		s.Grace = c.time(simbaGrace, 6*time.Second, 0)
	}
}

// nearest names the key that may have been meant, if one is near. A key that belongs into
// a section is found without it, too.
func nearest(key string) string {
	known := names()
	last := key[strings.LastIndexByte(key, '.')+1:]
	best := slices.MinFunc(known, func(a, b string) int {
		return cmp.Compare(apart(key, last, a), apart(key, last, b))
	})
	if apart(key, last, best) > max(2, len(last)/3) {
		return "; the keys are " + strings.Join(known, ", ")
	}
	return "; did you mean " + best + "?"
}

// apart is how far a key is from one that there is.
func apart(key, last, known string) int {
	plain := strings.NewReplacer("_", "", "-", "")
	end := known[strings.LastIndexByte(known, '.')+1:]
	fold := func(s string) string { return strings.ToLower(plain.Replace(s)) }
	return min(distance(fold(key), fold(known)), 1+distance(fold(last), fold(end)))
}

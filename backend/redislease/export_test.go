package redislease

import (
	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

// SpeakOld makes the driver send the scripts for Redis 6.2.
func (d *Driver) SpeakOld() *Driver {
	d.nodes.single.speaks.Store(int32(old) + 1)
	return d
}

// Names are the four keys of a line.
func Names(slot, key string) []string {
	var names []string
	for _, name := range (naming{slot: slot}).appendKeys(nil, key) {
		names = append(names, name.(string))
	}
	return names
}

// KeyOf is the inverse of the first of Names.
func KeyOf(slot, name string) (string, bool) { return naming{slot: slot}.key(name) }

// Tag is what the driver believes that Redis hashes.
func Tag(slot, key string) string { return naming{slot: slot}.tag(key) }

// Classify is classify.
func Classify(err error) error { return classify(err) }

// Scripts are the sources by name.
func Scripts() map[string][2]string {
	all := make(map[string][2]string)
	s := newScripts()
	for _, x := range []script{s.take, s.takes, s.join, s.give, s.gives, s.hold, s.renew, s.leave, s.end, s.lines, s.watch} {
		all[x.name] = x.source
	}
	return all
}

// Retries is how often the driver's own client sends again by itself.
func (d *Driver) Retries() int { return d.nodes.single.rdb.(*redis.Client).Options().MaxRetries }

// Takes are Joins that hope for empty lines and coincide; their answers, and errors.
func (d *Driver) Takes(joins ...driver.Join) ([]any, []error) {
	calls := make([]*call, len(joins))
	for i := range joins {
		calls[i] = d.taking(&joins[i])
	}
	return d.atOnce(calls)
}

// Gives are Leaves of claims that stand alone, as they hope, and coincide.
func (d *Driver) Gives(refs ...driver.Ref) ([]any, []error) {
	calls := make([]*call, len(refs))
	for i, ref := range refs {
		calls[i] = d.giving(&driver.Leaving{Ref: ref})
	}
	return d.atOnce(calls)
}

func (d *Driver) atOnce(calls []*call) (replies []any, errs []error) {
	d.nodes.single.run(calls, nil)
	for _, c := range calls {
		replies, errs = append(replies, c.reply), append(errs, c.err)
	}
	return replies, errs
}

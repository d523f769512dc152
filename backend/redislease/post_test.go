package redislease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

// bothFlavours runs a test with the scripts of Redis 7 and those of 6.2.
func bothFlavours(t *testing.T, test func(t *testing.T, p *party, rdb *redis.Client)) {
	t.Helper()
	for name, old := range map[string]bool{"Redis 7": false, "Redis 6.2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := sharedServer(t).client(t)
			p := newParty(t, rdb, nil)
			if old {
				p.SpeakOld()
			}
			test(t, p, rdb)
		})
	}
}

// Joins that one script does are as if each were alone.
func TestJoinsThatCoincide(t *testing.T) {
	t.Parallel()
	bothFlavours(t, func(t *testing.T, p *party, rdb *redis.Client) {
		t.Helper()
		fresh, another, freed, held, foreign := p.claim(newKey()), p.claim(newKey()), p.claim(newKey()), p.claim(newKey()), p.claim(newKey())
		before, holder := p.claim(freed.Keys...), p.claim(held.Keys...)
		before.Life.Hold *= 3
		p.joins(&before, driver.Holding)
		p.leaves(&before, driver.Left)
		keep := rdb.PTTL(t.Context(), "hasp:{"+freed.Keys[0]+"}").Val()
		p.joins(&holder, driver.Holding)
		if err := rdb.LPush(t.Context(), "hasp:{"+foreign.Keys[0]+"}", "x").Err(); err != nil {
			t.Fatal(err)
		}
		var joins []driver.Join
		for _, c := range []driver.Claim{fresh, foreign, another, freed, held} {
			joins = append(joins, driver.Join{Claim: c})
		}
		replies, errs := p.Takes(joins...)
		first, _ := replies[0].(int64)
		later, _ := replies[3].(int64)
		switch {
		case errs[0] != nil || errs[2] != nil || errs[3] != nil || errs[4] != nil || !errors.Is(errs[1], driver.ErrRefused):
			t.Errorf("errors: %v", errs)
		case first == 0 || replies[2] != first:
			t.Errorf("free lines: %v; they were not taken at one time", replies)
		case later <= before.Number || replies[4] != nil:
			t.Errorf("a line just left: %v after %d; a held one: %v", later, before.Number, replies[4])
		}
		if got := rdb.PTTL(t.Context(), "hasp:{"+freed.Keys[0]+"}").Val(); got < life.Hold+keep/2 {
			t.Errorf("the record lives for %v; the last number was to outlive the line by %v", got, keep)
		}
		for _, c := range []driver.Claim{fresh, another, freed} {
			p.renews(&c, driver.Holding)
			p.leaves(&c, driver.Left)
		}
	})
}

// Leaves that one script does are as if each were alone. Who is dead is gone, be he young.
func TestLeavesThatCoincide(t *testing.T) {
	t.Parallel()
	bothFlavours(t, func(t *testing.T, p *party, _ *redis.Client) {
		t.Helper()
		old, kept, brief, short := p.claim(newKey()), p.claim(newKey()), p.claim(newKey()), p.claim(newKey())
		brief.Life.Hold, short.Life.Hold = 5*time.Millisecond, 120*time.Millisecond
		p.joins(&short, driver.Holding)
		p.joins(&old, driver.Holding)
		time.Sleep(short.Life.Hold + 5*time.Millisecond) // past its life
		p.joins(&brief, driver.Holding)
		time.Sleep(brief.Life.Hold + 2*time.Millisecond) // past its life
		young := p.claim(newKey())
		p.joins(&young, driver.Holding)
		p.joins(&kept, driver.Holding)
		stranger := p.claim(kept.Keys...)
		refs := []driver.Ref{old.Ref, brief.Ref, young.Ref, short.Ref, stranger.Ref}
		replies, errs := p.Gives(refs...)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for i, want := range []any{old.Number, nil, young.Number, nil, nil} {
			if replies[i] != want {
				t.Errorf("leave %d: %v, want %v", i, replies[i], want)
			}
		}
		p.renews(&kept, driver.Holding)
		p.leaves(&kept, driver.Left)
		p.leaves(&old, driver.Gone)
	})
}

// What is refused because of one key is refused to him alone who asked for it.
func TestARefusalConcernsOneCallOnly(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	admin := s.client(t)
	if err := admin.Do(t.Context(), "acl", "setuser", "some", "on", ">x", "~hasp:{test:*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	p := newParty(t, s.client(t, func(o *redis.Options) { o.Username, o.Password = "some", "x" }), nil)
	mine, forbidden, other := p.claim(newKey()), p.claim("elsewhere"), p.claim(newKey())
	replies, errs := p.Takes(driver.Join{Claim: mine}, driver.Join{Claim: forbidden}, driver.Join{Claim: other})
	if errs[0] != nil || errs[2] != nil || !errors.Is(errs[1], driver.ErrRefused) {
		t.Fatalf("errors: %v", errs)
	}
	for _, i := range []int{0, 2} {
		if n, _ := replies[i].(int64); n == 0 {
			t.Errorf("join %d: %v", i, replies[i])
		}
	}
	p.leaves(&mine, driver.Left)
	p.leaves(&other, driver.Left)
}

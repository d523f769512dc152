package hasp_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// spellings are the ways in which an id could be found in a text.
func spellings(id driver.ID) []string {
	raw := id[6:] // the part that is the claim's own
	decimal, list := fmt.Sprintf("%d", raw), fmt.Sprintf("%#v", raw)
	return []string{
		string(raw), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)),
		strings.Trim(decimal, "[]"), strings.ReplaceAll(strings.Trim(decimal, "[]"), " ", ","),
		strings.TrimSuffix(list[strings.Index(list, "{")+1:], "}"),
		base64.StdEncoding.EncodeToString(id[6:15]), base64.RawURLEncoding.EncodeToString(id[6:15]),
		base64.StdEncoding.EncodeToString(id[:]), base64.RawURLEncoding.EncodeToString(id[:]),
	}
}

// hides wants no text to have the id or the ticket in it.
func hides(t *testing.T, id driver.ID, ticket string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		for _, secret := range spellings(id) {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows the id as %q: %q", name, secret, text)
			}
		}
		if ticket != "" && strings.Contains(text, ticket) {
			t.Errorf("%s shows the ticket: %q", name, text)
		}
	}
}

// prints renders v in every way a program is likely to.
func prints(ctx context.Context, name string, v any, into map[string]string) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%T"} {
		into[name+" "+verb] = fmt.Sprintf(verb, v)
	}
	var text, js strings.Builder
	slog.New(slog.NewTextHandler(&text, nil)).LogAttrs(ctx, slog.LevelInfo, "m", slog.Any("v", v))
	slog.New(slog.NewJSONHandler(&js, nil)).LogAttrs(ctx, slog.LevelInfo, "m", slog.Any("v", v))
	into[name+" slog text"], into[name+" slog json"] = text.String(), js.String()
}

func TestG6_NothingPrintsAnIDOrATicket(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		l := w.lock(c, "k")
		ref := l.Ref()
		out := map[string]string{}
		prints(w.ctx, "lease", l, out)
		prints(w.ctx, "ref", ref, out)
		prints(w.ctx, "pointer to ref", &ref, out)
		prints(w.ctx, "id", ref.ID, out)
		prints(w.ctx, "pointer to id", &ref.ID, out)
		prints(w.ctx, "a struct with a ref", struct{ R driver.Ref }{ref}, out)
		prints(w.ctx, "a list of ids", []driver.ID{ref.ID}, out)
		prints(w.ctx, "a map of refs", map[string]driver.Ref{"r": ref}, out)
		prints(w.ctx, "claim", driver.Claim{Ref: ref}, out)
		prints(w.ctx, "renewal", driver.Renewal{Ref: ref}, out)
		prints(w.ctx, "leaving", driver.Leaving{Ref: ref}, out)
		prints(w.ctx, "join", driver.Join{Claim: driver.Claim{Ref: ref}}, out)
		prints(w.ctx, "signal", driver.Signal{ID: ref.ID}, out)
		ticket, err := l.Detach(w.ctx, time.Minute)
		wantError(t, err)
		secret, err := ticket.MarshalText()
		wantError(t, err)
		prints(w.ctx, "ticket", ticket, out)
		prints(w.ctx, "pointer to ticket", &ticket, out)
		prints(w.ctx, "a hidden ticket", struct{ t hasp.Ticket }{ticket}, out)
		for _, v := range []any{l, ref, driver.Signal{ID: ref.ID}} { // a ticket's JSON is the secret itself
			b, err := json.Marshal(v)
			wantError(t, err)
			out[fmt.Sprintf("json of %T", v)] = string(b)
		}
		line, err := c.Inspect(w.ctx, "k")
		wantError(t, err)
		prints(w.ctx, "line", line, out)
		hides(t, ref.ID, string(secret), out)
		if len(out) < 100 {
			t.Errorf("only %d texts", len(out))
		}
	})
}

func TestG6_NoErrorEventOrLogShowsAnIDOrATicket(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		var log strings.Builder
		c := w.clientWith(w.store.Driver(), hasp.Options{Observe: r.observe, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		out := map[string]string{}
		note := func(err error) {
			if err == nil {
				t.Error("no error")
				return
			}
			prints(w.ctx, "error "+err.Error(), err, out)
		}
		l := w.lock(c, "k")
		id := l.Ref().ID
		_, err := c.Mutex("k").TryLock(w.ctx)
		note(err)
		w.store.Fail(errors.New("down"))
		note(l.Extend(w.ctx, ttl))
		note(l.Release(w.ctx))
		w.store.Fail(nil)
		_, ticket := w.detach(c, time.Minute, "k2")
		secret, err := ticket.MarshalText()
		wantError(t, err)
		_, err = c.Sub("other").Resume(w.ctx, ticket)
		note(err)
		w.store.Wipe()
		_, err = c.Resume(w.ctx, ticket)
		note(err)
		var read hasp.Ticket
		note(read.UnmarshalText(secret[:len(secret)-1]))
		lost := w.lock(c, "k3")
		w.store.Drop("k3")
		<-lost.Done()
		note(lost.Err())
		synctest.Wait()
		for i, e := range r.all() {
			prints(w.ctx, fmt.Sprint("event ", i), e, out)
		}
		out["log"] = log.String()
		for _, id := range []driver.ID{id, lost.Ref().ID} {
			hides(t, id, string(secret), out)
		}
		if !strings.Contains(log.String(), "lease lost") {
			t.Errorf("log %q", log.String())
		}
	})
}

func TestAMaskedIDSaysThatItIsMasked(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintf("%v %x %d", driver.ID{1}, driver.ID{1}, driver.ID{1}); got != "id(masked) id(masked) id(masked)" {
		t.Errorf("%q", got)
	}
	if got := fmt.Sprintf("%v %#v", hasp.Ticket{}, &hasp.Ticket{}); !strings.HasPrefix(got, "ticket(masked)") {
		t.Errorf("%q", got)
	}
}

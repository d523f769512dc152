package proxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/integration/proxy"
)

// echoing starts a server that answers each line with the same line, and a proxy
// before it.
func echoing(t *testing.T) (*proxy.Proxy, chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	got := make(chan string, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					got <- lines.Text()
					_, _ = io.WriteString(conn, lines.Text()+"\n")
				}
				_ = conn.Close()
			}()
		}
	}()
	p, err := proxy.New(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, got
}

type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, p *proxy.Proxy) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// hears waits for the next line; "" means that nothing came within the time.
func (c *caller) hears(within time.Duration) (string, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
	line, err := c.in.ReadString('\n')
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", nil
	}
	return strings.TrimSuffix(line, "\n"), err
}

const (
	soon  = time.Minute
	brief = 50 * time.Millisecond
)

func (c *caller) want(line string) {
	c.t.Helper()
	if got, err := c.hears(soon); got != line || err != nil {
		c.t.Fatalf("heard %q (%v), want %q", got, err, line)
	}
}

func (c *caller) wantSilence() {
	c.t.Helper()
	if got, err := c.hears(brief); got != "" || err != nil {
		c.t.Fatalf("heard %q (%v), want silence", got, err)
	}
}

func (c *caller) wantReset() {
	c.t.Helper()
	if got, err := c.hears(soon); got != "" || err == nil || errors.Is(err, io.EOF) {
		c.t.Fatalf("heard %q (%v), want a reset connection", got, err)
	}
}

func TestWhatIsHeldArrivesAfterRelease(t *testing.T) {
	t.Parallel()
	p, got := echoing(t)
	a, b := dial(t, p), dial(t, p)
	a.say("one")
	a.want("one")
	b.say("one")
	b.want("one")
	release := p.Conns()[0].Hold(proxy.Both)
	a.say("two")
	a.wantSilence()
	b.say("not held")
	b.want("not held")
	release()
	a.want("two")
	release = p.Hold(proxy.ToClient)
	c := dial(t, p)
	c.say("three") // also a new connection is held
	for line := range got {
		if line == "three" {
			break
		}
	}
	c.wantSilence()
	release()
	c.want("three")
}

func TestWhatIsSwallowedNeverArrives(t *testing.T) {
	t.Parallel()
	p, _ := echoing(t)
	a, idle := dial(t, p), dial(t, p)
	idle.say("zero")
	idle.want("zero")
	end := p.Swallow(proxy.Both)
	a.say("one")
	a.wantSilence()
	end()
	a.wantReset()
	idle.say("it lost nothing")
	idle.want("it lost nothing")
}

func TestSlowDelaysBothDirections(t *testing.T) {
	t.Parallel()
	p, _ := echoing(t)
	a := dial(t, p)
	p.Slow(brief)
	begin := time.Now()
	a.say("one")
	a.want("one")
	if took := time.Since(begin); took < 2*brief {
		t.Errorf("took %s, want at least %s", took, 2*brief)
	}
	p.Slow(0)
	a.say("two")
	a.want("two")
}

func TestRefuseMakesTheServerSeemDown(t *testing.T) {
	t.Parallel()
	p, _ := echoing(t)
	a := dial(t, p)
	a.say("one")
	a.want("one")
	again := p.Refuse()
	a.wantReset()
	if conn, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come that early
		b := &caller{t, conn, bufio.NewReader(conn)}
		b.wantReset()
		_ = conn.Close()
	}
	again()
	c := dial(t, p)
	c.say("two")
	c.want("two")
}

func TestOneRequestIsSpoiled(t *testing.T) { // the cases share what the server got
	t.Parallel()
	p, got := echoing(t)

	t.Run("reset before it is forwarded", func(t *testing.T) {
		a := dial(t, p)
		happened := p.Spoil(proxy.Rule{Fault: proxy.ResetRequest, Match: "alpha", Skip: 1})
		a.say("alpha first")
		a.want("alpha first")
		a.say("alpha second")
		<-happened
		a.wantReset()
		if line := <-got; line != "alpha first" || len(got) > 0 {
			t.Error("the request that was reset has arrived")
		}
	})
	t.Run("its reply is dropped", func(t *testing.T) {
		a := dial(t, p)
		happened := p.Spoil(proxy.Rule{Fault: proxy.DropReply, Match: "beta"})
		a.say("beta")
		<-happened
		a.wantReset()
		if line := <-got; line != "beta" {
			t.Errorf("the server got %q", line)
		}
		a = dial(t, p)
		a.say("beta")
		a.want("beta")
	})
	t.Run("its reply is swallowed", func(t *testing.T) {
		a := dial(t, p)
		happened := p.Spoil(proxy.Rule{Fault: proxy.SwallowReply, Match: "gamma"})
		a.say("gamma")
		<-happened
		a.wantSilence()
	})
	t.Run("its reply is delayed", func(t *testing.T) {
		a := dial(t, p)
		p.Spoil(proxy.Rule{Fault: proxy.DelayReply, Match: "delta", Delay: 2 * brief})
		a.say("delta")
		a.wantSilence()
		a.want("delta")
	})
	t.Run("a forgiven one is not", func(t *testing.T) {
		a := dial(t, p)
		p.Spoil(proxy.Rule{Fault: proxy.ResetRequest, Match: "epsilon"})
		p.Forgive()
		a.say("epsilon")
		a.want("epsilon")
	})
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	p, _ := echoing(t)
	a := dial(t, p)
	a.say("one")
	a.want("one")
	p.Hold(proxy.Both)
	a.say("two")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if len(p.Conns()) > 0 {
		t.Error("a connection is left")
	}
}

package pglease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// nonceWait is how long the listener waits to hear itself.
	nonceWait = time.Second
	// proveEvery is how often a silent connection is asked whether it is still there.
	proveEvery = 15 * time.Second
	// connectWait bounds the making of the listening connection, and each proof.
	connectWait = 5 * time.Second
	// deafPause is how long the driver polls before it tries to listen again, where a
	// connection was made but nothing was heard: a pooler will hardly be gone soon.
	deafPause = time.Minute
	// Pauses between two tries to connect.
	minPause, maxPause = 50 * time.Millisecond, 5 * time.Second
)

// pusher listens on a connection of its own, outside the pool.
type pusher struct {
	pool  *pgxpool.Pool
	steps *steps
}

var errDeaf = errors.New("what was sent to the listening connection is not heard")

// push listens until ctx ends. While it hears, the client need not poll.
func (p *pusher) push(ctx context.Context, inbox [6]byte) {
	pause := minPause
	for {
		heard, err := p.listen(ctx, inbox)
		p.steps.Hear(false)
		switch {
		case heard:
			pause = minPause
		case errors.Is(err, errDeaf):
			pause = deafPause
		default:
			pause = min(2*pause, maxPause)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// listen is the life of one connection. It says whether anything could be heard on it.
func (p *pusher) listen(ctx context.Context, inbox [6]byte) (heard bool, err error) {
	conn, err := p.connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectWait)
		defer cancel()
		_ = conn.Close(end) // it may be broken
	}()
	channel := "hasp_" + hex.EncodeToString(inbox[:])
	if err := ask(ctx, conn, "LISTEN "+channel); err != nil {
		return false, err
	}
	if err := p.echo(ctx, conn, channel); err != nil {
		return false, err
	}
	p.steps.Hear(true)
	for {
		wait, cancel := context.WithTimeout(ctx, proveEvery)
		n, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			p.deliver(n.Payload)
		case ctx.Err() != nil || conn.IsClosed() || !pgconn.Timeout(err):
			return true, err
		default:
			if err := ask(ctx, conn, ""); err != nil { // an empty statement
				return true, err
			}
		}
	}
}

// connect makes a connection as the pool would.
func (p *pusher) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	config := p.pool.Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "hasp" // for those who wonder what it is
	}
	return pgx.ConnectConfig(ctx, config.ConnConfig)
}

// ask runs a statement that answers nothing.
func ask(ctx context.Context, conn *pgx.Conn, text string) error {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	_, err := conn.PgConn().Exec(ctx, text).ReadAll()
	return err
}

// echo waits until a nonce sent through the pool is heard. Behind a pooler that lends
// server connections out, LISTEN succeeds and nothing ever comes.
func (p *pusher) echo(ctx context.Context, conn *pgx.Conn, channel string) error {
	nonce := "N" + rand.Text()
	sent := make(chan error, 1)
	wait, cancel := context.WithTimeout(ctx, nonceWait)
	defer cancel()
	go func() { sent <- p.steps.notify(wait, channel, nonce) }()
	for {
		n, err := conn.WaitForNotification(wait)
		if err == nil {
			if n.Payload == nonce {
				return <-sent
			}
			continue
		}
		if err := <-sent; err != nil {
			return err // the pool could not send it, which proves nothing
		}
		if ctx.Err() == nil && pgconn.Timeout(err) {
			return errDeaf
		}
		return err
	}
}

// deliver passes a notification on. What cannot be read is no news of ours.
func (p *pusher) deliver(payload string) {
	if len(payload) != 1+32+16 {
		return
	}
	raw, err := hex.DecodeString(payload[1:33])
	if err != nil {
		return
	}
	number, err := strconv.ParseInt(payload[33:], 16, 64)
	if err != nil {
		return
	}
	if id, key, ok := p.steps.book.named(digest(raw)); ok {
		p.steps.pass(payload[0], id, key, number)
	}
}

package redislease_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
)

// answer is an error of the server.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestErrorsHaveTheirClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want error
	}{
		{answer("OOM command not allowed when used memory > 'maxmemory'."), driver.ErrRefused},
		{answer("NOPERM User x has no permissions to run the 'evalsha' command"), driver.ErrRefused},
		{answer("NOAUTH Authentication required."), driver.ErrRefused},
		{answer("WRONGPASS invalid username-password pair or user is disabled."), driver.ErrRefused},
		{answer("WRONGTYPE Operation against a key holding the wrong kind of value"), driver.ErrRefused},
		{answer("MISCONF Redis is configured to save RDB snapshots"), driver.ErrRefused},
		{answer("NOREPLICAS Not enough good replicas to write."), driver.ErrRefused},
		{answer("HASPFOREIGN not a value of hasp"), driver.ErrRefused},
		{answer("HASPNEWER layout version 2, this client knows 1"), driver.ErrRefused},
		{answer("CROSSSLOT Keys in request don't hash to the same slot"), driver.ErrRefused},
		{answer("NOSCRIPT No matching script."), driver.ErrUnavailable},
		{answer("MOVED 1234 127.0.0.1:7001"), driver.ErrUnavailable},
		{answer("ASK 1234 127.0.0.1:7001"), driver.ErrUnavailable},
		{answer("TRYAGAIN Multiple keys request during rehashing of slot"), driver.ErrUnavailable},
		{answer("LOADING Redis is loading the dataset in memory"), driver.ErrUnavailable},
		{answer("READONLY You can't write against a read only replica."), driver.ErrUnavailable},
		{answer("CLUSTERDOWN The cluster is down"), driver.ErrUnavailable},
		{answer("MASTERDOWN Link with MASTER is down"), driver.ErrUnavailable},
		{answer("BUSY Redis is busy running a script."), driver.ErrUnavailable},
		{answer("ERR max number of clients reached"), driver.ErrUnavailable},
		{answer("ERR OOM in the text is not a code"), driver.ErrUnavailable},
		{answer("ERR Error running script (call to f_d3c1db19620e73b527a0fdf01f5450372058ff5a): @user_script:11: @user_script: 11: -OOM command not allowed when used memory > 'maxmemory'."), driver.ErrRefused},
		{answer("ERR Error running script (call to f_ce8efa9da19a76e040a1564e527ee72297cd02d5): @user_script:6: WRONGTYPE Operation against a key holding the wrong kind of value"), driver.ErrRefused},
		{answer("ERR Error running script (call to f_ce8efa9da19a76e040a1564e527ee72297cd02d5): @user_script: 6: -READONLY You can't write against a read only replica."), driver.ErrUnavailable},
		{answer("ERR Error running script (call to f_ce8efa9da19a76e040a1564e527ee72297cd02d5): @user_script:6: attempt to index a nil value: OOM"), driver.ErrUnavailable},
		{answer("ERR Error running script (call to f_"), driver.ErrUnavailable},
		{errors.New("OOM not of a server"), driver.ErrUnavailable},
		{io.EOF, driver.ErrUnavailable},
		{context.DeadlineExceeded, driver.ErrUnavailable},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, driver.ErrUnavailable},
		{fmt.Errorf("wrapped: %w", answer("OOM x")), driver.ErrRefused},
		{fmt.Errorf("as it is: %w", driver.ErrUnsupported), driver.ErrUnsupported},
		{fmt.Errorf("as it is: %w", driver.ErrInvalid), driver.ErrInvalid},
	} {
		got := redislease.Classify(c.err)
		if !errors.Is(got, c.want) || !errors.Is(got, c.err) {
			t.Errorf("%v is %v, want %v", c.err, got, c.want)
		}
		for _, other := range []error{driver.ErrRefused, driver.ErrUnavailable, driver.ErrInvalid, driver.ErrUnsupported} {
			if !errors.Is(c.want, other) && errors.Is(got, other) {
				t.Errorf("%v is %v too", c.err, other)
			}
		}
	}
	if redislease.Classify(nil) != nil {
		t.Error("nil is an error")
	}
}

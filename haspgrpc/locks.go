package haspgrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/hasp-dev/hasp"
)

// Options say how a call takes its lock. Nil and the zero value mean the defaults.
type Options struct {
	// TTL is how long the store keeps the lock without a renewal, 100 ms to 30 days; it
	// is renewed while the handler runs. Defaults to the client's, which is 10 s unless
	// changed.
	TTL time.Duration
	// Wait is how long a call stands in line, at most until its own deadline, or
	// [hasp.Forever]. Defaults to 0: it is answered at once.
	Wait time.Duration
	// Retry is the pause between attempts of a call that waits at a store without a line,
	// from 1 ms to 1 h; of no effect at other stores. Defaults to 50 ms.
	Retry time.Duration
	// MaxLine is how many may wait for one key: in this client, and in the store's line, in
	// which the calls of another server count as one; who comes then is answered at once.
	// Defaults to no limit.
	MaxLine int
	// Shared takes the lock to read: several such calls run at once, but not beside one
	// that takes it exclusively. It needs exactly one key.
	Shared bool
}

// Bounds of a TTL and of a pause, which are those of package hasp.
const (
	minTTL       = 100 * time.Millisecond
	maxTTL       = 30 * 24 * time.Hour
	minRetry     = time.Millisecond
	maxRetry     = time.Hour
	defaultRetry = 50 * time.Millisecond
)

// check answers all that is wrong with the options.
func (o *Options) check() []error {
	var errs []error
	if o.TTL != 0 && (o.TTL < minTTL || o.TTL > maxTTL) {
		errs = append(errs, fmt.Errorf("option TTL is %s; it must be from %s to %s, or 0 for the client's", o.TTL, minTTL, maxTTL))
	}
	if o.Wait < 0 && o.Wait != hasp.NoWait {
		errs = append(errs, fmt.Errorf("option Wait is %s; it must not be negative", o.Wait))
	}
	if o.Retry != 0 && (o.Retry < minRetry || o.Retry > maxRetry) {
		errs = append(errs, fmt.Errorf("option Retry is %s; it must be from %s to %s, or 0 for %s", o.Retry, minRetry, maxRetry, defaultRetry))
	}
	if o.MaxLine < 0 {
		errs = append(errs, errors.New("option MaxLine must not be negative"))
	}
	return errs
}

// lock is what the options say of each lock.
func (o *Options) lock() hasp.LockOptions {
	retry := cmp.Or(o.Retry, defaultRetry)
	return hasp.LockOptions{
		TTL: o.TTL, Wait: cmp.Or(o.Wait, hasp.NoWait), MaxLine: o.MaxLine,
		Backoff: hasp.Backoff{Min: retry, Max: retry},
	}
}

// Locks are the locks of a server's methods.
type Locks struct {
	client *hasp.Client
	keys   map[string]Key
	shared bool
}

// New makes the locks of methods, which are named as gRPC does: "/package.Service/Method".
func New(client *hasp.Client, keys map[string]Key, o *Options) (*Locks, error) {
	o = cmp.Or(o, new(Options))
	var errs []error
	if client == nil {
		errs = append(errs, errors.New("the client is nil; make one with hasp.New"))
	}
	if len(keys) == 0 {
		errs = append(errs, errors.New("there are no keys, so that nothing would be locked"))
	}
	for _, method := range slices.Sorted(maps.Keys(keys)) {
		if service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/"); !strings.HasPrefix(method, "/") || !ok || service == "" || name == "" {
			errs = append(errs, fmt.Errorf(`%q is no full method name; those are like "/package.Service/Method"`, method))
		}
		if keys[method].keys == nil {
			errs = append(errs, fmt.Errorf("the Key of %q is empty; Fields and Func make one", method))
		}
	}
	if errs = append(errs, o.check()...); len(errs) > 0 {
		return nil, fmt.Errorf("haspgrpc: %w: %w", hasp.ErrInvalid, errors.Join(errs...))
	}
	return &Locks{client: client.With(o.lock()), keys: maps.Clone(keys), shared: o.Shared}, nil
}

// services is a *grpc.Server, or what stands for one.
type services interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}

// Check says which methods the server does not have, of those that have a key. Call it
// when all services are registered: a method that is misspelt is not locked.
func (l *Locks) Check(server services) error {
	known := make(map[string]bool)
	for service, info := range server.GetServiceInfo() {
		for _, m := range info.Methods {
			known["/"+service+"/"+m.Name] = true
		}
	}
	var errs []error
	for _, method := range slices.Sorted(maps.Keys(l.keys)) {
		if !known[method] {
			errs = append(errs, fmt.Errorf("the server has no method %q", method))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("haspgrpc: %w: %w", hasp.ErrInvalid, errors.Join(errs...))
	}
	return nil
}

// Unary is the interceptor of unary methods.
func (l *Locks) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	key, ok := l.keys[info.FullMethod]
	if !ok {
		return handler(ctx, request)
	}
	lease, err := l.acquire(ctx, key, request)
	if err != nil {
		return nil, code(ctx, err)
	}
	defer lease.Release(ctx) // also when the handler panics, which goes on after this
	answer, err := handler(lease.Context(ctx), request)
	if gone := lost(lease); err == nil && gone != nil {
		return nil, code(ctx, gone)
	}
	return answer, err
}

// Stream is the interceptor of streaming methods.
func (l *Locks) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	key, ok := l.keys[info.FullMethod]
	if !ok {
		return handler(srv, ss)
	}
	first := key.message()
	switch err := ss.RecvMsg(first); {
	case errors.Is(err, io.EOF):
		_ = l.client.NoKey(ss.Context(), errNoMessage) // counts it
		return code(ss.Context(), &keyError{errNoMessage})
	case err != nil:
		return fmt.Errorf("no first message to take the key from: %w", err)
	}
	ctx := ss.Context()
	lease, err := l.acquire(ctx, key, first)
	if err != nil {
		return code(ctx, err)
	}
	defer lease.Release(ctx)
	err = handler(srv, &stream{ServerStream: ss, ctx: lease.Context(ctx), lease: lease, first: first})
	if gone := lost(lease); err == nil && gone != nil {
		return code(ctx, gone)
	}
	return err
}

func (l *Locks) acquire(ctx context.Context, key Key, request any) (*hasp.Lease, error) {
	message, ok := request.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%w: the request is a %T, no proto.Message", errSetUp, request)
	}
	keys, err := key.keys(ctx, message)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("%w: the function answered no key", hasp.ErrInvalid)
	}
	if err != nil {
		_ = l.client.NoKey(ctx, err) // counts it; the answer is ours
	}
	switch {
	case errors.Is(err, errSetUp):
		return nil, err
	case err != nil:
		return nil, &keyError{err}
	case l.shared && len(keys) > 1:
		return nil, fmt.Errorf("%w: %d keys for a shared lock, which has one", errSetUp, len(keys))
	}
	var lease *hasp.Lease
	if l.shared {
		lease, err = l.client.RWMutex(keys[0]).RLock(ctx)
	} else {
		lease, err = l.client.Mutex(keys[0], keys[1:]...).Lock(ctx)
	}
	if errors.Is(err, hasp.ErrInvalid) && !carries(ctx, keys) {
		return nil, &keyError{err}
	}
	return lease, err
}

// lost says how a lease was lost. One that the handler gave back, kept or detached was not.
func lost(lease *hasp.Lease) error {
	if err := lease.Err(); !errors.Is(err, hasp.ErrReleased) {
		return err
	}
	return nil
}

// carries says whether ctx has a lease on one of the keys, so that a lock on it cannot
// be right.
func carries(ctx context.Context, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		_, ok := hasp.FromContext(ctx, key)
		return ok
	})
}

// stream is a stream whose first message has been read. It sends nothing once the lease
// is lost.
type stream struct {
	grpc.ServerStream
	ctx   context.Context //nolint:containedctx // a ServerStream has one
	lease *hasp.Lease
	first proto.Message // nil once the handler has it
}

// Context carries the lease.
func (s *stream) Context() context.Context { return s.ctx }

// RecvMsg receives the first message again, then the others.
func (s *stream) RecvMsg(m any) error {
	if s.first == nil {
		return s.ServerStream.RecvMsg(m)
	}
	into, ok := m.(proto.Message)
	if !ok || into.ProtoReflect().Descriptor() != s.first.ProtoReflect().Descriptor() {
		return code(s.ServerStream.Context(), fmt.Errorf("%w: the handler receives a %T, the key was made for a %T", errSetUp, m, s.first))
	}
	proto.Reset(into)
	proto.Merge(into, s.first)
	s.first = nil
	return nil
}

// SendMsg sends a message while the lease is held.
func (s *stream) SendMsg(m any) error {
	if err := lost(s.lease); err != nil {
		return code(s.ServerStream.Context(), err)
	}
	return s.ServerStream.SendMsg(m)
}

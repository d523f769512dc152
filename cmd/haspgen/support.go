package main

// support is what the decorators of a package share.
const support = `
// haspLock is the lock of one method.
type haspLock struct {
	client    *hasp.Client
	templates []*keytmpl.Template
	err       error
}

// haspTimes are the durations of a lock as they were written.
type haspTimes struct{ expiration, timeout, retry, refresh string }

func newHaspLock(client *hasp.Client, prefix string, times haspTimes, templates ...string) haspLock {
	var l haspLock
	expiration, err1 := keytmpl.Duration(times.expiration, nil)
	timeout, err2 := keytmpl.Duration(times.timeout, nil)
	retry, err3 := keytmpl.Duration(times.retry, nil)
	refresh, err4 := keytmpl.Duration(times.refresh, nil)
	var err5, err6 error
	switch {
	case client == nil:
		err5 = fmt.Errorf("%w: the client is nil", hasp.ErrInvalid)
	case err1 == nil && expiration == 0:
		err5 = fmt.Errorf("%w: expiration %q is 0, no time to hold a lock in", hasp.ErrInvalid, times.expiration)
	case err3 == nil && retry == 0:
		err5 = fmt.Errorf("%w: retry %q is 0, which would ask without a pause", hasp.ErrInvalid, times.retry)
	}
	l.templates, err6 = keytmpl.ParseAll(templates...)
	if l.err = errors.Join(err1, err2, err3, err4, err5, err6); l.err != nil {
		l.err = &hasp.Error{Op: "acquire", Err: l.err}
		return l
	}
	if timeout == 0 {
		timeout = hasp.NoWait
	}
	l.client = client.Sub(prefix).With(hasp.LockOptions{
		TTL: expiration, Wait: timeout, NoRenew: refresh == 0,
		Backoff: hasp.Backoff{Min: retry, Max: retry},
	})
	return l
}

// add makes a key of one of the templates and adds it, unless it is there.
func (l haspLock) add(keys []string, template int, value func(string) (string, bool)) ([]string, error) {
	key, err := l.templates[template].Key(value)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(keys, key) {
		keys = append(keys, key)
	}
	return keys, nil
}

// do runs a function under the lock.
func (l haspLock) do(ctx context.Context, keys []string, shared bool, run func(context.Context) error) error {
	if shared {
		return l.client.RWMutex(keys[0]).RDo(ctx, run)
	}
	return l.client.Mutex(keys[0], keys[1:]...).Do(ctx, run)
}
`

// supportManual is for methods that release their lease themselves.
const supportManual = `
// hold runs a function with the lease in its context, which that function releases; only
// if it panics that is done here.
func (l haspLock) hold(ctx context.Context, keys []string, shared bool, run func(context.Context) error) error {
	var lease *hasp.Lease
	var err error
	if shared {
		lease, err = l.client.RWMutex(keys[0]).RLock(ctx)
	} else {
		lease, err = l.client.Mutex(keys[0], keys[1:]...).Lock(ctx)
	}
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned {
			_ = lease.Release(ctx) // the panic goes on
		}
	}()
	err = run(lease.Context(ctx))
	returned = true
	return err
}
`

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/open"
)

// Variables that say where the locks are.
const (
	envURL        = open.EnvName
	envRequireURL = "HASP_REQUIRE_URL"
	envState      = "XDG_STATE_HOME"
	envHome       = "HOME"
)

// storeFlags say where the locks are.
type storeFlags struct {
	url, urlFile string
	local        bool
}

func (f *storeFlags) register(flags *pflag.FlagSet) {
	flags.Var(filled{&f.url}, "url", "the store, such as sqlite:/var/lib/app/locks.db or redis://cache:6379 (default $"+envURL+")")
	flags.Var(filled{&f.urlFile}, "url-file", "a file with the URL of the store in it")
	flags.BoolVar(&f.local, "local", false, "take the local file of this user, whatever "+envURL+" says")
}

// filled is a text that is not empty: who gives an empty one had something else in mind
// than the default.
type filled struct{ text *string }

// Set takes it.
func (f filled) Set(text string) error {
	if text == "" {
		return usagef("it is empty")
	}
	*f.text = text
	return nil
}

// String is the default in the help.
func (f filled) String() string { return "" }

// Type is for the help.
func (f filled) Type() string { return "string" }

// choice is a store that was chosen: a URL, or the local file.
type choice struct {
	url   string
	local string // the local file's path
}

// choose decides by flags and environment. It reads at most the file of --url-file.
func (f *storeFlags) choose(env environment) (choice, error) {
	switch {
	case f.urlFile != "":
		url, err := readURL(f.urlFile)
		return choice{url: url}, err
	case f.url != "":
		return choice{url: f.url}, nil
	case env.get(envURL) != "" && !f.local:
		return choice{url: env.get(envURL)}, nil
	}
	required, err := truth(env, envRequireURL)
	if err != nil {
		return choice{}, err
	}
	if required {
		return choice{}, usagef("%s is set, and no store is named by --url, --url-file or %s; the local file is not taken, as it excludes on this machine only", envRequireURL, envURL)
	}
	path, err := localFile(env)
	return choice{url: open.FileURL(path), local: path}, err
}

// readURL reads the one line of a file.
func readURL(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", usagef("--url-file: %w", err)
	}
	url := strings.TrimSpace(string(text))
	if url == "" || strings.ContainsAny(url, "\r\n") {
		return "", usagef("--url-file: %s must hold one line, the URL of the store", path)
	}
	return url, nil
}

func truth(env environment, name string) (bool, error) {
	text := env.get(name)
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, usagef("%s is %q; it must be 1 or 0", name, text)
	}
	return value, nil
}

// localFile is where the locks of a user are who names no store.
func localFile(env environment) (string, error) {
	state := env.get(envState)
	if home := env.get(envHome); !filepath.IsAbs(state) && filepath.IsAbs(home) {
		state = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(state) {
		return "", usagef("no store: neither %s nor %s holds an absolute path, where the local file would be; name a store by --url or %s", envState, envHome, envURL)
	}
	return filepath.Join(state, "hasp", "hasp.db"), nil
}

// opened is a store with a client on it.
type opened struct {
	*hasp.Client
	store *open.Store
	url   string
}

// connect opens the chosen store and makes a client. The local file is made where it
// is missing; nothing else ever is.
func (a *app) connect(ctx context.Context, opts *hasp.Options) (*opened, error) {
	c, err := a.store.choose(a.env)
	if err != nil {
		return nil, err
	}
	store, err := a.openStore(ctx, c)
	if err != nil {
		return nil, err
	}
	a.where = store.String()
	client, err := hasp.New(store.Driver(), opts)
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	return &opened{Client: client, store: store, url: c.url}, nil
}

func (a *app) openStore(ctx context.Context, c choice) (*open.Store, error) {
	if c.local == "" {
		return open.URL(c.url, &open.Options{Warn: a.caution()})
	}
	if !a.quiet {
		a.warn("local", fmt.Errorf("the locks are in %s, so they exclude on this machine only", c.local))
	}
	if err := os.MkdirAll(filepath.Dir(c.local), 0o700); err != nil {
		return nil, refused(err)
	}
	store, err := open.URL(c.url, &open.Options{Create: true})
	if err != nil {
		return nil, err
	}
	// A writer less, where the tables are there: the client checks once more, but that is
	// all it does.
	if err := store.Driver().Check(ctx); errors.Is(err, hasp.ErrRefused) {
		if err := store.Migrate(ctx); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	return store, nil
}

// caution tells what a store warns of, unless nobody wants to know.
func (a *app) caution() func(error) {
	if a.quiet {
		return nil
	}
	return func(err error) { a.warn("store", err) }
}

// refused says that the file system refuses.
func refused(err error) error { return fmt.Errorf("%w: %w", hasp.ErrRefused, err) }

// close ends the client, then the store.
func (o *opened) close(ctx context.Context) error {
	err := o.Close(ctx)
	if closeErr := o.store.Close(); err == nil {
		err = closeErr
	}
	return err
}

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/open"
)

// Bounds of completing keys.
const (
	completionTime = time.Second
	completionKeys = 200
)

// completeKey offers the keys that somebody holds or waits for, for one argument.
// Where the store cannot be asked it offers nothing.
func (a *app) completeKey(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	keys, _ := a.completeKeys(cmd, args, begun)
	return keys, cobra.ShellCompDirectiveNoFileComp
}

// completeKeys is the same for any number of arguments, and offers files where no key
// begins so: it is not told whether it is asked about what stands behind --.
func (a *app) completeKeys(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	return a.keys(ctx, begun), cobra.ShellCompDirectiveDefault
}

// keys are the keys that begin so. Unlike connect this makes no file.
func (a *app) keys(ctx context.Context, prefix string) []string {
	c, err := a.store.choose(a.env)
	if err != nil {
		return nil
	}
	store, err := open.URL(c.url, nil)
	if err != nil {
		return nil
	}
	client, err := hasp.New(store.Driver(), nil)
	if err != nil {
		_ = store.Close()
		return nil
	}
	defer a.disconnect(ctx, &opened{Client: client, store: store})
	var keys []string
	for l, err := range client.List(ctx, prefix) {
		if err != nil || len(keys) == completionKeys {
			break
		}
		keys = append(keys, l.Key)
	}
	return keys
}

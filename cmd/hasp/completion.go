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

// completeKeys offers the keys that somebody holds or waits for, for the first
// arguments, at most so many; 0: any number. Where the store cannot be asked it offers
// nothing.
func (a *app) completeKeys(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if cmd.ArgsLenAtDash() >= 0 { // the command of run
			return nil, cobra.ShellCompDirectiveDefault
		}
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		return a.keys(ctx, begun), cobra.ShellCompDirectiveNoFileComp
	}
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

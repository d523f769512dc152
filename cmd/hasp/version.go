package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  hasp version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if a.json {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintf(a.Out, "hasp %s (%s, %s)\n", v.Version, v.Go, v.System)
			return err
		},
	}
}

type version struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
}

// readVersion asks the build: the release tool writes no version into the source.
func readVersion() version {
	v := version{Version: "(devel)", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	return v
}

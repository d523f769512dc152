package main

// StoreFlags are the flags that say where the locks are.
type StoreFlags struct {
	URL, URLFile string
	Local        bool
}

// Choose answers the URL that flags and environment lead to.
func Choose(f StoreFlags, env []string) (string, error) {
	flags := storeFlags{url: f.URL, urlFile: f.URLFile, local: f.Local}
	c, err := flags.choose(env)
	return c.url, err
}

// Package proxy is a TCP proxy that fails on command: it cuts connections, falls silent
// in one direction or both, is slow, or treats one chosen request badly.
package proxy

// Package servers starts real servers from Debian's packages, on free ports of the
// loopback interface and in folders of their own. A server that is missing is an error
// that names the package. Every server is asked for its process id before it is used,
// so that nobody works on another one that happens to listen there.
package servers

package open

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// address is what a URL says of servers and of who logs in there. It is not left to
// net/url, whose errors repeat what they were given, and which knows one host only.
type address struct {
	user, password string
	hosts          []string // each as host:port
	path           string   // behind the first slash
	query          string
}

// where says which store it is, without user and password.
func (a *address) where(scheme string) string {
	return scheme + "://" + strings.Join(a.hosts, ",") + "/" + a.path
}

// parseAddress reads what stands behind the scheme and its colon. There may be no server
// where the parameter called socket, if there is such a one, stands in its place.
func parseAddress(scheme, rest, port, socket string) (*address, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return nil, invalidf("a %s URL begins with %s:// and goes on with the server: %[2]s://HOST:%s", scheme, scheme, port)
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if strings.ContainsAny(tail, "@#") {
		return nil, invalidf("behind the server the %s URL contains @ or #: where user or password contain / ? # or @ these are written %%2F %%3F %%23 %%40, and so are @ and # in a parameter", scheme)
	}
	a := &address{}
	at := strings.LastIndexByte(authority, '@')
	if at >= 0 {
		if err := a.login(scheme, authority[:at]); err != nil {
			return nil, err
		}
	}
	path, query, _ := strings.Cut(tail, "?")
	local := authority[at+1:] == "" && socket != "" && strings.Contains("&"+query, "&"+socket+"=")
	if !local {
		if err := a.servers(scheme, authority[at+1:], port); err != nil {
			return nil, err
		}
	}
	path, err := url.PathUnescape(strings.TrimPrefix(path, "/"))
	if err != nil {
		return nil, invalidf("a %% in the path of the %s URL is written %%25", scheme)
	}
	a.path, a.query = path, query
	return a, nil
}

// login reads USER:PASSWORD.
func (a *address) login(scheme, text string) error {
	user, password, _ := strings.Cut(text, ":")
	var errUser, errPassword error
	a.user, errUser = url.PathUnescape(user)
	a.password, errPassword = url.PathUnescape(password)
	switch {
	case errUser != nil || errPassword != nil:
		return invalidf("a %% in user or password of the %s URL is written %%25", scheme)
	case strings.ContainsRune(a.user+a.password, 0):
		return invalidf("user or password of the %s URL contain a NUL", scheme)
	}
	return nil
}

// servers reads HOST:PORT,HOST:PORT. A server is named by its place: what stands there
// may be a password that lacks its @.
func (a *address) servers(scheme, text, port string) error {
	for i, server := range strings.Split(text, ",") {
		host, number := server, port
		if colon := strings.LastIndexByte(server, ':'); colon > strings.LastIndexByte(server, ']') {
			host, number = server[:colon], server[colon+1:]
		}
		if n, err := strconv.ParseUint(number, 10, 16); err != nil || n == 0 {
			return invalidf("the port of server %d in the %s URL must be a number from 1 to 65535; the URL is %[2]s://USER:PASSWORD@HOST:%s", i+1, scheme, port)
		}
		host, ok := hostName(host)
		if !ok {
			return invalidf("server %d in the %s URL must have a host: a name, an IPv4 address, or an IPv6 address in brackets", i+1, scheme)
		}
		a.hosts = append(a.hosts, net.JoinHostPort(host, number))
	}
	return nil
}

// hostName answers a host without its brackets.
func hostName(text string) (string, bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		ip, err := netip.ParseAddr(inner)
		return inner, ok && err == nil && ip.Is6()
	}
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._", r)
	}
	return text, text != "" && !strings.ContainsFunc(text, odd)
}

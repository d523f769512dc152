package open

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/hasp-dev/hasp/driver"
)

// tlsNames are the parameters that say how TLS is spoken.
func tlsNames() []string {
	return []string{"tls_ca", "tls_cert", "tls_key", "tls_server_name", "tls_insecure_skip_verify"}
}

// tlsConfig reads them. Without TLS they are refused, so that nobody believes to be
// protected.
func tlsConfig(p *parameters, on bool, how string) (*tls.Config, error) {
	if !on {
		for _, name := range tlsNames() {
			if p.values.Has(name) {
				return nil, invalidf("the parameter %q of the URL needs TLS: %s", name, how)
			}
		}
		return nil, nil //nolint:nilnil // no TLS, no mistake
	}
	ca, cert, key := p.text("tls_ca"), p.text("tls_cert"), p.text("tls_key")
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         p.text("tls_server_name"),
		InsecureSkipVerify: p.truth("tls_insecure_skip_verify"), //nolint:gosec // asked for by name
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case (cert == "") != (key == ""):
		return nil, invalidf("the parameters tls_cert and tls_key of the URL belong together; give both")
	case c.InsecureSkipVerify && (ca != "" || c.ServerName != ""):
		return nil, invalidf("tls_insecure_skip_verify looks at no certificate, so tls_ca and tls_server_name have no meaning beside it")
	}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%w: the parameter tls_ca of the URL: %w", driver.ErrInvalid, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, invalidf("the parameter tls_ca of the URL: %s holds no certificate in PEM", ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%w: the parameters tls_cert and tls_key of the URL: %w", driver.ErrInvalid, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

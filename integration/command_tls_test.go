package integration_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/integration/servers"
)

// certificate makes one that has signed itself, for the loopback, and answers the files
// of it and of its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		wantNil(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	return write("cert", "CERTIFICATE", must(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)),
		write("key", "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(private))(t))
}

// commandByTLS reaches a MariaDB that speaks nothing else, and only if it is the right one.
func commandByTLS(t *testing.T, binary string) {
	cert, key := certificate(t)
	m := must(servers.StartMariaDB("--innodb-flush-log-at-trx-commit=0", "--ssl-cert="+cert, "--ssl-key="+key, "--require-secure-transport=on"))(t)
	t.Cleanup(func() { wantNil(t, m.Close()) })
	url := "mysql://root@" + m.Addr + "/mysql"
	c := command{t, binary, url + "?tls=true&tls_ca=" + cert}
	c.ends(c.start("migrate"), 0, "is ready")
	c.ends(c.start("run", "k", "-n", "--", "echo", "ran"), 0, "ran")
	unchecked := command{t, binary, url + "?tls=true&tls_insecure_skip_verify=true"}
	unchecked.ends(unchecked.start("run", "k", "-n", "--", "echo", "ran"), 0, "ran")
	other, _ := certificate(t)
	for params, want := range map[string]string{
		"":                          "",
		"?tls=true":                 "certificate",
		"?tls=true&tls_ca=" + other: "certificate",
		"?tls=true&tls_server_name=db.example&tls_ca=" + cert: "db.example",
	} {
		wrong := command{t, binary, url + params}
		wrong.ends(wrong.start("run", "k", "-n", "--", "echo", "ran"), 69, want)
	}
}

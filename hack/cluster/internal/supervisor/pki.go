package supervisor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

// certLifetime is far longer than any cluster of this kind lives.
const certLifetime = 30 * 24 * time.Hour

// authority signs every certificate of one cluster.
type authority struct {
	dir  string
	now  time.Time
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// identity is a client certificate and the files that hold it.
type identity struct {
	certFile, keyFile string
	certPEM, keyPEM   []byte
}

// newAuthority creates a certificate authority whose files live in dir.
func newAuthority(dir string, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of the certificate authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "janus-cluster"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse the certificate authority: %w", err)
	}
	a := &authority{dir: dir, now: now, cert: cert, key: key, pem: encodePEM("CERTIFICATE", der)}
	return a, writeFile(a.file(), a.pem)
}

// file is the path of the authority's certificate.
func (a *authority) file() string { return filepath.Join(a.dir, "ca.crt") }

// serving issues the certificate that every component serves with.
func (a *authority) serving() (identity, error) {
	return a.issue("serving", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "localhost"},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// client issues a certificate by which the API server knows its bearer as the
// user and a member of the groups.
func (a *authority) client(name, user string, groups ...string) (identity, error) {
	return a.issue(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// issue completes and signs the template, and writes name.crt and name.key.
func (a *authority) issue(name string, template *x509.Certificate) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("generate the %s key: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return identity{}, fmt.Errorf("draw a serial number for %s: %w", name, err)
	}
	template.SerialNumber = serial
	template.NotBefore = a.cert.NotBefore
	template.NotAfter = a.cert.NotAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return identity{}, fmt.Errorf("sign the %s certificate: %w", name, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return identity{}, fmt.Errorf("encode the %s key: %w", name, err)
	}
	id := identity{
		certFile: filepath.Join(a.dir, name+".crt"),
		keyFile:  filepath.Join(a.dir, name+".key"),
		certPEM:  encodePEM("CERTIFICATE", der),
		keyPEM:   keyPEM,
	}
	if err := writeFile(id.certFile, id.certPEM); err != nil {
		return identity{}, err
	}
	return id, writeFile(id.keyFile, id.keyPEM)
}

// writeSigningKey creates the key that signs ServiceAccount tokens.
func writeSigningKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate the ServiceAccount signing key: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return fmt.Errorf("encode the ServiceAccount signing key: %w", err)
	}
	return writeFile(path, keyPEM)
}

// tlsConfig trusts the authority and presents the identity.
func (a *authority) tlsConfig(id identity) (*tls.Config, error) {
	cert, err := tls.X509KeyPair(id.certPEM, id.keyPEM)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", id.certFile, err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encodePEM("EC PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

package serving

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"
)

// Certificates returns the certificate to serve with.
type Certificates struct {
	load  func() (tls.Certificate, error)
	every time.Duration
	clock clock.PassiveClock
	log   *zap.Logger

	mu      sync.Mutex
	current tls.Certificate
	loaded  time.Time
}

const (
	// renewed is how soon a certificate that another client has renewed is used. The old one
	// is valid for much longer.
	renewed = time.Minute
	// selfSigned is how long a certificate that we have made is used: half of the year
	// for which it is valid.
	selfSigned = 180 * 24 * time.Hour
)

// FromDirectory reads tls.crt and tls.key, as a Secret of type kubernetes.io/tls is mounted.
func FromDirectory(dir string, clock clock.PassiveClock, log *zap.Logger) (*Certificates, error) {
	return newCertificates(func() (tls.Certificate, error) {
		certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err != nil {
			return certificate, fmt.Errorf("read the certificate in %s: %w", dir, err)
		}
		return certificate, nil
	}, renewed, clock, log)
}

// SelfSigned makes a certificate for the given name.
func SelfSigned(host string, clock clock.PassiveClock, log *zap.Logger) (*Certificates, error) {
	return newCertificates(func() (tls.Certificate, error) {
		certificate, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("make a certificate for %s: %w", host, err)
		}
		return tls.X509KeyPair(certificate, key)
	}, selfSigned, clock, log)
}

func newCertificates(load func() (tls.Certificate, error), every time.Duration, clock clock.PassiveClock, log *zap.Logger) (*Certificates, error) {
	first, err := load()
	if err != nil {
		return nil, err
	}
	return &Certificates{load: load, every: every, clock: clock, log: log, current: first, loaded: clock.Now()}, nil
}

// TLS is the configuration of a server that uses the certificates.
func (c *Certificates) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

// get returns the certificate for a connection. One that cannot be loaded again, such as
// while its files are being replaced, does not take the place of one that could.
func (c *Certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clock.Since(c.loaded) >= c.every {
		c.loaded = c.clock.Now()
		fresh, err := c.load()
		if err != nil {
			c.log.Warn("the certificate was not loaded again; going on with the one from before", zap.Error(err))
		} else {
			c.current = fresh
		}
	}
	certificate := c.current
	return &certificate, nil
}

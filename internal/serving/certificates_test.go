package serving

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	certutil "k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"
)

// served is the name in the certificate that a server with them shows.
func served(t *testing.T, c *Certificates) string {
	t.Helper()
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	done := make(chan error, 1)
	go func() { done <- tls.Server(ours, c.TLS()).HandshakeContext(t.Context()) }()
	conn := tls.Client(theirs, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is looked at below
	require.NoError(t, conn.HandshakeContext(t.Context()))
	require.NoError(t, <-done)
	leaf := conn.ConnectionState().PeerCertificates[0]
	require.Len(t, leaf.DNSNames, 1)
	assert.True(t, leaf.NotAfter.After(time.Now().Add(selfSigned)), "it is valid for longer than it is used")
	return leaf.DNSNames[0]
}

// put writes a certificate of a name into a directory.
func put(t *testing.T, dir, name string) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(name, nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
}

func TestARenewedCertificateIsUsed(t *testing.T) {
	dir := t.TempDir()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	put(t, dir, "first")
	c, err := FromDirectory(dir, clock, zap.NewNop())
	require.NoError(t, err)
	assert.Equal(t, "first", served(t, c))

	put(t, dir, "second")
	assert.Equal(t, "first", served(t, c), "the files are not read for each connection")
	clock.SetTime(clock.Now().Add(renewed))
	assert.Equal(t, "second", served(t, c))

	// A key that does not belong to the certificate is what one sees half-way.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), []byte("not a key"), 0o600))
	clock.SetTime(clock.Now().Add(renewed))
	assert.Equal(t, "second", served(t, c))
	put(t, dir, "third")
	clock.SetTime(clock.Now().Add(renewed))
	assert.Equal(t, "third", served(t, c))
}

func TestACertificateThatCannotBeReadIsToldAtOnce(t *testing.T) {
	_, err := FromDirectory(t.TempDir(), clocktesting.NewFakePassiveClock(time.Now()), zap.NewNop())
	require.ErrorContains(t, err, "read the certificate in ")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestASelfSignedCertificateIsMadeAnewBeforeItExpires(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	c, err := SelfSigned("janusd-0", clock, zap.NewNop())
	require.NoError(t, err)
	assert.Equal(t, "janusd-0", served(t, c))
	first := c.current.Certificate[0]
	served(t, c)
	assert.Equal(t, first, c.current.Certificate[0])
	clock.SetTime(clock.Now().Add(selfSigned))
	served(t, c)
	assert.NotEqual(t, first, c.current.Certificate[0])
}

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"janus.io/janus/test/harness"
)

// secure has the metrics served as they are by default, on a port of our own.
var secure = []string{"--metrics-bind-address=127.0.0.1:0", "--metrics-secure"}

// token makes a ServiceAccount that may get some paths, and returns a token of it.
func token(t *testing.T, e *harness.Env, name string, paths ...string) string {
	t.Helper()
	accounts := e.Kube.CoreV1().ServiceAccounts(e.Namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	if len(paths) > 0 {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: e.Namespace + "-" + name},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}},
		}
		_, err = e.Kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = e.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: role.ObjectMeta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.Namespace, Name: name}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	request, err := accounts.CreateToken(t.Context(), name, &authnv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return request.Status.Token
}

// scrape asks for the metrics with a token, and returns the status and the body of the
// answer.
func scrape(t *testing.T, p *process, config *tls.Config, bearer string) (int, string) {
	t.Helper()
	addr, _ := p.await("serving metrics")["address"].(string)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: patience}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/metrics", nil)
	require.NoError(t, err)
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, answer.TLS.Version, uint16(tls.VersionTLS12))
	return answer.StatusCode, string(body)
}

var unverified = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the certificate is self-signed

func TestMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	e := newEnv(t)
	reader, other := token(t, e, "reader", "/metrics"), token(t, e, "other")
	g := newGate(t, func(*http.Request) bool { return false })
	p := startWith(t, g.kubeconfig, e.Namespace, secure...)

	code, body := scrape(t, p, unverified, "")
	assert.Equal(t, http.StatusUnauthorized, code)
	assert.NotContains(t, body, "janus_")
	code, body = scrape(t, p, unverified, other)
	assert.Equal(t, http.StatusForbidden, code)
	assert.NotContains(t, body, "janus_build_info")

	require.Eventually(t, func() bool {
		code, body = scrape(t, p, unverified, reader)
		return code == http.StatusOK
	}, patience, 100*time.Millisecond, "a role takes effect some moments after it is bound")
	assert.Contains(t, body, "\njanus_build_info{")

	// The API server is away. Who was let through just before is known still.
	third := token(t, e, "third", "/metrics")
	g.cut.Store(true)
	code, body = scrape(t, p, unverified, third)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, body, "the API server did not say whether you may read this")
	code, _ = scrape(t, p, unverified, reader)
	assert.Equal(t, http.StatusOK, code)
}

func TestMetricsAreServedWithTheCertificateOfTheDirectory(t *testing.T) {
	e := newEnv(t)
	dir := t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	p := startJanusd(t, e, append(secure, "--metrics-cert-dir="+dir)...)
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(certificate))
	code, _ := scrape(t, p, &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, "")
	assert.Equal(t, http.StatusUnauthorized, code, "the certificate is the one to trust")
}

// Clients that speak no TLS must not put lines into the log that are none.
func TestAStrangeClientDoesNotSpoilTheLog(t *testing.T) {
	e := newEnv(t)
	p := startJanusd(t, e, append(secure, "--log-level=debug")...)
	code, _ := p.get("metrics", "/metrics")
	assert.Equal(t, http.StatusBadRequest, code)
	require.Eventually(t, func() bool { return bytes.Contains(bytes.Join(p.log(), nil), []byte("TLS handshake error")) }, patience, 50*time.Millisecond)
	for _, line := range p.log() {
		var said entry
		require.NoError(t, json.Unmarshal(line, &said), "%s", line)
		if message, _ := said["msg"].(string); strings.Contains(message, "TLS handshake error") {
			assert.Equal(t, "debug", said["level"])
		}
	}
}

func TestProfilesAreServedOnlyWhereTheyAreAskedFor(t *testing.T) {
	e := newEnv(t)
	p := startJanusd(t, e, "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")
	p.await("watching Transactions")
	assert.Empty(t, p.entries("serving profiles"))
	for _, server := range []string{"metrics", "health probes"} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/heap"} {
			code, _ := p.get(server, path)
			assert.Equal(t, http.StatusNotFound, code, "%s of %s", path, server)
		}
	}
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.exit())

	p = startJanusd(t, e, "--pprof-bind-address=127.0.0.1:0")
	code, body := p.get("profiles", "/debug/pprof/goroutine?debug=1")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, body, "goroutine profile: total ")
	code, _ = p.get("profiles", "/metrics")
	assert.Equal(t, http.StatusNotFound, code)
}

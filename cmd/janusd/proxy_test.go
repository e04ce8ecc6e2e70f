package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// A gate is between a janusd and the API server. It holds back the requests that a
// test wants it to, and can cut the wire.
type gate struct {
	kubeconfig string
	reached    chan struct{} // closed when the first such request is there
	open       chan struct{} // closed by the test to let it pass
	cut        atomic.Bool
	refused    atomic.Bool // those requests are refused from then on
}

// newGate holds back requests that the function picks, dry runs excepted.
func newGate(t *testing.T, held func(*http.Request) bool) *gate {
	t.Helper()
	client, err := harness.NewClient(testcluster.Shared(t).Config())
	require.NoError(t, err)
	config, err := client.AsJanusd(t.Context())
	require.NoError(t, err)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	server, err := url.Parse(config.Host)
	require.NoError(t, err)
	g := &gate{reached: make(chan struct{}), open: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	var first atomic.Bool
	over := make(chan struct{}) // a server does not notice that a client has gone before it has read the body
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.cut.Load() {
			panic(http.ErrAbortHandler)
		}
		if held(r) && !strings.Contains(r.URL.RawQuery, "dryRun") {
			if first.CompareAndSwap(false, true) {
				close(g.reached)
			}
			if g.refused.Load() {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a fault of the test"}`))
				return
			}
			select {
			case <-g.open:
			case <-over:
				panic(http.ErrAbortHandler)
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(over)
		front.CloseClientConnections()
		front.Close()
	})
	g.kubeconfig = filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(g.kubeconfig, []byte(`
apiVersion: v1
kind: Config
current-context: x
clusters: [{name: x, cluster: {server: "`+front.URL+`"}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
users: [{name: x, user: {}}]
`), 0o600))
	return g
}

// patchOf picks the patch of a ConfigMap.
func patchOf(name string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/"+name)
	}
}

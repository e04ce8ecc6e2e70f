package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// gate is a way to the API server that lets the creations of so many objects with contents
// through, and stops at the next.
type gate struct {
	*httptest.Server
	reached  chan struct{} // closed when that one is there
	released chan struct{} // closed to let its connection go; it is never passed on
}

func newGate(t *testing.T, passing int64) *gate {
	t.Helper()
	config := unlimited(rest.CopyConfig(testcluster.Shared(t).Config()))
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	to, err := url.Parse(config.Host)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	g := &gate{reached: make(chan struct{}), released: make(chan struct{})}
	var creations atomic.Int64
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := strings.HasSuffix(r.URL.Path, "/configmaps") || strings.HasSuffix(r.URL.Path, "/secrets")
		if r.Method != http.MethodPost || !content || r.URL.Query().Has("dryRun") {
			proxy.ServeHTTP(w, r)
			return
		}
		switch n := creations.Add(1); {
		case n <= passing:
			proxy.ServeHTTP(w, r)
		case n == passing+1:
			close(g.reached)
			<-g.released
		}
	}))
	t.Cleanup(g.Close)
	return g
}

// kubeconfig writes one whose server is the gate.
func (g *gate) kubeconfig(t *testing.T, namespace string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["gate"] = &clientcmdapi.Cluster{Server: g.URL}
	config.Contexts["gate"] = &clientcmdapi.Context{Cluster: "gate", Namespace: namespace}
	config.CurrentContext = "gate"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// writes are the requests of Janus that write anything but Transactions and events. What is tried
// writes nothing.
type writes struct {
	mu   sync.Mutex
	seen []string
}

func (w *writes) wrap(real http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		own := strings.Contains(r.URL.Path, "/transactions/") || strings.HasSuffix(r.URL.Path, "/events") || strings.HasSuffix(r.URL.Path, "accessreviews")
		if r.Method != http.MethodGet && !own && !r.URL.Query().Has("dryRun") {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, r.Method+" "+r.URL.RequestURI())
		}
		return real.RoundTrip(r)
	})
}

// The process of the command is killed when it has stored one of several objects. Nothing of the
// Transaction begins, and when it is ten minutes old by janusd's clock it goes.
func TestARunThatIsKilledBetweenTwoContentsLeavesNothing(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	clock, asked := &harness.Clock{}, &writes{}
	clock.Turn(9 * time.Minute)
	e.Start(harness.WithClock(clock), harness.WithTransport(asked.wrap))
	g := newGate(t, 1)
	cmd := exec.CommandContext(t.Context(), "kubectl-janus", "run", "-f", writeBundle(t, 30, 150_000), "--service-account", "deployer", "--name", "killed")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+g.kubeconfig(t, e.Namespace), "HOME="+t.TempDir())
	process := harness.RunProgram(t, cmd)
	select {
	case <-g.reached:
	case <-process.Ended():
		require.Fail(t, "the command has ended", process.Log())
	case <-time.After(time.Minute):
		require.Fail(t, "the command has not stored its contents", process.Log())
	}
	process.Signal(syscall.SIGKILL)
	<-process.Ended()
	close(g.released)
	require.Equal(t, -1, process.ExitCode(), "a signal has ended it: %s", process.Log())

	txn := e.Await("killed", "waiting for its contents", func(t *api.Transaction) bool {
		return strings.Contains(harness.Describe(t), errclass.ContentMissing)
	})
	assert.Equal(t, api.PhasePending, txn.Status.Phase, "nine minutes are not enough")
	assert.Contains(t, harness.Describe(txn), "is missing: it has not been stored yet")
	assert.Equal(t, []string{"killed-content-0"}, listing{e}.names())

	clock.Turn(2 * time.Minute)
	e.Gone("killed")
	e.Until("what was stored is gone", func() bool { return len(listing{e}.names()) == 0 })
	asked.mu.Lock()
	defer asked.mu.Unlock()
	assert.Empty(t, asked.seen, "nothing was begun, and no lock was taken")
}

package processes

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// patience is how long anything may take once the faults are over. It covers the
// time for which Janus waits for an unanswered request, and is far above what is
// needed on an idle machine.
const patience = 5 * time.Minute

// system is janusd's own namespace.
const system = "janus-system"

// accounts are the ServiceAccounts that Transactions name, in turn.
var accounts = []string{"deployer", "releaser"}

// world is a namespace in which Transactions run under faults.
type world struct {
	*harness.Client
	t          *testing.T
	cluster    *testcluster.Cluster
	namespace  string
	kubeconfig string // of janusd
	counts     counts
	history    *history
	load       *load
	foreign    *foreign
	restarted  bool // whether the control plane was

	mu        sync.Mutex
	processes []*janusd
	scraped   []string
}

// newWorld makes the namespace and begins to watch it.
func newWorld(t *testing.T, cluster *testcluster.Cluster) *world {
	t.Helper()
	client, err := harness.NewClient(cluster.Config())
	require.NoError(t, err)
	w := &world{Client: client, t: t, cluster: cluster, namespace: cluster.Namespace(t)}
	w.install()
	require.NoError(t, w.ApplyYAML(t.Context(), w.namespace, strings.ReplaceAll(fixture, "NAMESPACE", w.namespace)))
	w.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, w.JanusdKubeconfig(t.Context(), w.kubeconfig))
	require.NoError(t, w.RefuseIn(t.Context(), w.namespace))
	w.until("the policy is in force", func(ctx context.Context) bool { return w.Refuses(ctx, w.namespace) })
	w.history = w.watch()
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, j := range w.processes {
			j.Signal(syscall.SIGKILL)
			<-j.Ended()
		}
		t.Logf("seed %d%s", *seed, w.counts.table())
	})
	return w
}

// random is a source for one part of a test.
func (w *world) random(part string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(w.t.Name() + "/" + part))
	return rand.New(rand.NewPCG(*seed, h.Sum64())) //nolint:gosec // G404: nothing secret is made of it.
}

var installed sync.Map // *testcluster.Cluster → *sync.Once

// install gives the cluster janusd's namespace, rights and policies, as deploy/ has
// them.
func (w *world) install() {
	w.t.Helper()
	once, _ := installed.LoadOrStore(w.cluster, &sync.Once{})
	once.(*sync.Once).Do(func() {
		deploy := filepath.Join(harness.Root(), "deploy")
		for _, args := range [][]string{
			{"apply", "-f", filepath.Join(deploy, "base", "namespace.yaml")},
			{"apply", "-k", filepath.Join(deploy, "rbac")},
			{"apply", "-k", filepath.Join(deploy, "policies")},
			{"wait", "--for=condition=Established", "crd/transactions.backup.janus.io", "--timeout=60s"},
		} {
			_, err := w.cluster.Kubectl(w.t.Context(), "", args...)
			require.NoError(w.t, err)
		}
	})
}

// fixture is what the Transactions of a namespace need.
const fixture = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: deployer}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: releaser}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects:
  - {kind: ServiceAccount, name: deployer, namespace: NAMESPACE}
  - {kind: ServiceAccount, name: releaser, namespace: NAMESPACE}
`

func (w *world) add(j *janusd) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, j)
}

// all returns every janusd that was ever started.
func (w *world) all() []*janusd {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*janusd{}, w.processes...)
}

// scrape keeps the metrics that a janusd serves.
func (w *world) scrape(j *janusd) {
	if text := j.metrics(); text != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.scraped = append(w.scraped, text)
	}
}

// until waits until something is so.
func (w *world) until(what string, so func(ctx context.Context) bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) { return so(ctx), nil })
	require.NoError(w.t, err, "it never was so that %s", what)
}

// pause waits for a time between two bounds.
func pause(r *rand.Rand, least, most time.Duration) {
	time.Sleep(least + time.Duration(r.Int64N(int64(most-least)+1)))
}

package concurrency

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// soon is how long a small Transaction of another namespace may take, whatever one namespace does. On a
// machine where it takes long anyhow, it may take five times as long.
const soon = 5 * time.Second

// TestOneNamespaceDoesNotHoldUpAnother has janusd, as it is shipped, meet what one namespace can do to
// it, and wants small Transactions of another namespace to end soon all the while.
func TestOneNamespaceDoesNotHoldUpAnother(t *testing.T) {
	program := harness.BuildJanusd(t)
	for name, attack := range map[string]func(t *testing.T, e *harness.Env){
		"a webhook that never answers":    hangs,
		"conditions that take long":       thinks,
		"a thousand Transactions":         floods,
		"rights in a thousand namespaces": asks,
		"a thousand missing namespaces":   asksWithRights,
	} {
		t.Run(name, func(t *testing.T) {
			busy, quiet := harness.New(t), harness.New(t)
			config := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, busy.JanusdKubeconfig(t.Context(), config))
			run := exec.CommandContext(t.Context(), program, "--kubeconfig="+config, "--watch-namespaces="+busy.Namespace+","+quiet.Namespace,
				"--metrics-bind-address=0", "--health-probe-bind-address=0")
			janusd := harness.RunProgram(t, run)
			t.Cleanup(func() {
				janusd.Signal(syscall.SIGKILL)
				<-janusd.Ended()
				if t.Failed() {
					log := janusd.Log()
					t.Logf("janusd wrote:\n%s", log[max(0, len(log)-20000):])
				}
			})
			usual := several(t, quiet, "before")
			attack(t, busy)
			during := several(t, quiet, "during")
			t.Logf("small Transactions took %v before the attack, and %v during it", usual, during)
			assert.Less(t, during, max(soon, 5*usual))
		})
	}
}

// several runs some small Transactions in turn, and returns how long half of them took at most.
func several(t *testing.T, e *harness.Env, name string) time.Duration {
	t.Helper()
	var took []time.Duration
	for n := range 5 {
		took = append(took, small(t, e, fmt.Sprintf("%s-%d", name, n)))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// small runs a small Transaction, and returns how long that took.
func small(t *testing.T, e *harness.Env, name string) time.Duration {
	t.Helper()
	began := time.Now()
	e.Submit(name, fmt.Sprintf(`changes: [{type: Create, target: {apiVersion: v1, kind: ConfigMap, name: %s}, content: {data: {a: b}}}]`, name))
	require.Equal(t, api.PhaseCommitted, e.Ended(name).Status.Phase)
	return time.Since(began)
}

// creates are changes that create ConfigMaps.
func creates(prefix string, n int, more string) string {
	var out strings.Builder
	out.WriteString("changes:\n")
	for i := range n {
		fmt.Fprintf(&out, "- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: %s-%d}, content: {data: {a: b}}%s}\n", prefix, i, more)
	}
	return out.String()
}

// hangs has Transactions whose creations a webhook is asked about that never answers.
func hangs(t *testing.T, e *harness.Env) {
	t.Helper()
	neverAnswers(t, e, 10)
	for n := range 8 {
		e.Submit(fmt.Sprintf("hangs-%d", n), creates(fmt.Sprintf("hangs-%d", n), 300, ""))
	}
	time.Sleep(2 * time.Second) // So that they have their workers.
}

// An attempt stops once it is clear that requests are not answered, and does not go through all of the
// changes first.
func TestAnAttemptWhoseRequestsHangStops(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	neverAnswers(t, e, 5)
	e.Start()
	began := time.Now()
	e.Submit("hangs", creates("hangs", 300, ""))
	e.Await("hangs", "says what it waits for", func(txn *api.Transaction) bool {
		return meta.IsStatusConditionPresentAndEqual(txn.Status.Conditions, api.ConditionReconciling, metav1.ConditionTrue) &&
			meta.FindStatusCondition(txn.Status.Conditions, api.ConditionReconciling).Reason == errclass.WebhookUnavailable
	})
	assert.Less(t, time.Since(began), time.Minute, "all of it would take two and a half")
}

// neverAnswers has a webhook take every connection and answer none, that is asked about ConfigMaps of
// some names in a namespace, for so many seconds. It ends when it is told to, or with the test.
func neverAnswers(t *testing.T, e *harness.Env, seconds int) (lift func()) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			if _, err := listener.Accept(); err != nil {
				return // What was accepted is closed when the test process ends.
			}
		}
	}()
	e.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hangs-%[1]s}
webhooks:
- name: hangs.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: %[3]d
  failurePolicy: Fail
  clientConfig: {url: "https://%[2]s/"}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  matchConditions: [{name: named, expression: "object.metadata.name.startsWith('hangs-')"}]
`, e.Namespace, listener.Addr(), seconds))
	lift = sync.OnceFunc(func() {
		require.NoError(t, e.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.WithoutCancel(t.Context()), "hangs-"+e.Namespace, metav1.DeleteOptions{}))
	})
	t.Cleanup(lift)
	return lift
}

// thinks has conditions over many keys, which take as long as a condition may.
func thinks(t *testing.T, e *harness.Env) {
	t.Helper()
	keys := make([]string, 20000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%q: https://example.com/%d", fmt.Sprintf("k%d", i), i)
	}
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: large}, data: {" + strings.Join(keys, ", ") + "}}")
	for n := range 8 {
		e.Submit(fmt.Sprintf("thinks-%d", n), `
changes:
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: large}, content: {data: {k0: "b"}}, when: "object.data.all(k, isURL(object.data[k]))",
   readyWhen: {expression: "object.data.all(k, !isURL(object.data[k]) || true) && false"}}`)
	}
	time.Sleep(2 * time.Second)
}

// floods creates very many Transactions.
func floods(t *testing.T, e *harness.Env) {
	t.Helper()
	fanout.Do(8, 1000, func(n int) {
		_ = e.TrySubmit(fmt.Sprintf("floods-%d", n), creates(fmt.Sprintf("floods-%d", n), 1, ""))
	})
}

// asks has Transactions that name a thousand namespaces which do not exist.
func asks(t *testing.T, e *harness.Env) {
	t.Helper()
	for n := range 8 {
		e.Submit(fmt.Sprintf("asks-%d", n), elsewhere(1000))
	}
}

// asksWithRights is asks for a ServiceAccount that may do anything anywhere.
func asksWithRights(t *testing.T, e *harness.Env) {
	t.Helper()
	mayAnywhere(t, e)
	asks(t, e)
}

// elsewhere are changes in so many namespaces that do not exist.
func elsewhere(n int) string {
	var out strings.Builder
	out.WriteString("changes:\n")
	for i := range n {
		fmt.Fprintf(&out, "- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: a, namespace: missing-%d}, content: {}}\n", i)
	}
	return out.String()
}

// mayAnywhere lets the ServiceAccount do anything in all namespaces.
func mayAnywhere(t *testing.T, e *harness.Env) {
	t.Helper()
	name := "anywhere-" + e.Namespace
	e.Apply(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: %s}]
`, name, e.Namespace))
	t.Cleanup(func() {
		require.NoError(t, e.Kube.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
	})
}

// What is wrong with a thousand changes is clear after a hundred: the rest takes no requests, whether it
// is a right that lacks or the namespace.
func TestAThousandProblemsTakeFewRequests(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T, *harness.Env){
		"without rights":     func(*testing.T, *harness.Env) {},
		"without namespaces": mayAnywhere,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			prepare(t, e)
			e.Start()
			txn := e.Run("asks", elsewhere(1000))
			assert.Equal(t, api.PhaseFailed, txn.Status.Phase)
			ready := meta.FindStatusCondition(txn.Status.Conditions, api.ConditionReady)
			assert.Regexp(t, "^[0-9]+ of 1000 changes are refused, and the others were not tried: ", ready.Message)
			mine := testcluster.Filter(e.Audit(), func(r testcluster.AuditEvent) bool {
				return strings.Contains(r.ImpersonatedUser, ":"+e.Namespace+":")
			})
			assert.NotEmpty(t, mine)
			assert.Less(t, len(mine), 1000)
		})
	}
}

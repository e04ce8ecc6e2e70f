package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

const targets = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {v: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {v: "1"}}
`

const changes = `
changes:
- {name: a, target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {v: "2"}}}
- {name: b, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {v: "2"}}}
`

func newEnv(t *testing.T) *harness.Env {
	t.Helper()
	e := harness.New(t)
	e.OwnRights()
	e.Apply(targets)
	return e
}

// committed wants a Transaction that ended well, with its changes in effect.
func committed(t *testing.T, e *harness.Env, name string) {
	t.Helper()
	txn := e.Ended(name)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "2", e.Value("ConfigMap/a", "data", "v"))
	assert.Equal(t, "2", e.Value("ConfigMap/b", "data", "v"))
	e.NothingLeft(name)
}

func TestJanusdRunsATransactionAndStopsWhenTold(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(s.String(), func(t *testing.T) {
			e := newEnv(t)
			p := startJanusd(t, e)
			e.Submit("deploy", changes)
			committed(t, e, "deploy")
			p.signal(s)
			assert.Equal(t, 0, p.exit())
		})
	}
}

// kubectl looks for the events of the version that it takes for the object.
func TestKubectlFindsTheEventsOfATransaction(t *testing.T) {
	e := newEnv(t)
	startJanusd(t, e)
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
	shell := e.Shell()
	for _, command := range []string{"kubectl events --for=transaction/deploy", "kubectl describe transaction deploy"} {
		assert.Eventually(t, func() bool {
			said, err := shell.Run(t.Context(), command)
			return err == nil && strings.Contains(said, "all 2 changes are in effect")
		}, 20*time.Second, 200*time.Millisecond, command)
	}
}

func TestAStopFinishesTheStepInHand(t *testing.T) {
	for name, args := range map[string][]string{"alone": nil, "as the leader": {"--leader-elect"}} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			g := newGate(t, patchOf("a"))
			p := startWith(t, g.kubeconfig, e.Namespace, args...)
			e.Submit("deploy", changes)
			<-g.reached
			p.signal(syscall.SIGTERM)
			p.await("stopping: the steps in flight are finished first")
			if len(args) > 0 {
				assert.NotEmpty(t, leader(t, e), "it keeps the Lease as long as it works")
			}
			close(g.open)
			assert.Equal(t, 0, p.exit())

			txn := e.Transaction("deploy")
			require.Equal(t, api.PhaseCommitting, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, []api.ItemState{api.ItemCommitted, api.ItemCommitting}, states(txn), "the step is on record and no other was begun")
			assert.Equal(t, "1", e.Value("ConfigMap/b", "data", "v"))
			if len(args) > 0 {
				assert.Empty(t, leader(t, e), "it gave the Lease back")
			}

			startJanusd(t, e)
			committed(t, e, "deploy")
		})
	}
}

func states(t *api.Transaction) []api.ItemState {
	var out []api.ItemState
	for _, item := range t.Status.Items {
		out = append(out, item.State)
	}
	return out
}

// leader is who holds the leader Lease.
func leader(t *testing.T, e *harness.Env) string {
	t.Helper()
	lease, err := e.Kube.CoordinationV1().Leases(e.Namespace).Get(t.Context(), leaderLease, metav1.GetOptions{})
	require.NoError(t, err)
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func TestWhatJanusdServes(t *testing.T) {
	e := newEnv(t)
	p := startJanusd(t, e, "--leader-elect", "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")
	p.await("watching Transactions")
	e.Submit("deploy", changes)
	committed(t, e, "deploy")

	for _, path := range []string{"/healthz", "/readyz"} {
		code, body := p.get("health probes", path)
		assert.Equal(t, http.StatusOK, code, path)
		assert.Equal(t, "ok\n", body, path)
	}
	code, _ := p.get("health probes", "/metrics")
	assert.Equal(t, http.StatusNotFound, code, "metrics are elsewhere")

	code, body := p.get("metrics", "/metrics")
	require.Equal(t, http.StatusOK, code, body)
	seen := map[string]int{}
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllStringSubmatch(body, -1) {
		seen[match[1]]++
	}
	for name, n := range seen {
		assert.Equal(t, 1, n, "family %s", name)
	}
	for _, name := range []string{
		"janus_build_info", "janus_transaction_phase_transitions_total", "janus_transaction_duration_seconds", "janus_transactions_active", "janus_transactions_awaiting_approval",
		"janus_transactions_waiting", "janus_transactions_past_half_timeout",
		"janus_item_operations_total", "janus_lock_operations_total", "janus_transaction_item_count",
		"workqueue_depth", "workqueue_adds_total", "workqueue_retries_total", "workqueue_queue_duration_seconds",
		"rest_client_requests_total", "rest_client_request_duration_seconds", "leader_election_master_status",
		"go_goroutines", "go_memstats_heap_alloc_bytes", "process_cpu_seconds_total", "process_resident_memory_bytes",
	} {
		assert.Contains(t, slices.Collect(maps.Keys(seen)), name)
	}
	for _, line := range []string{
		`janus_build_info{version="`, `workqueue_depth{name="transactions"} 0`, `leader_election_master_status{name="janusd-leader"} 1`,
		`janus_transaction_phase_transitions_total{from_phase="Committing",to_phase="Committed"} 1`,
	} {
		assert.Contains(t, body, "\n"+line)
	}
	assert.NotContains(t, body, "deploy\"", "no label names a Transaction that has ended")
}

// Not ready is told until the Transactions are listed: here they cannot be.
func TestJanusdIsNotReadyBeforeItKnowsTheTransactions(t *testing.T) {
	e := newEnv(t)
	g := newGate(t, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/transactions") })
	p := startWith(t, g.kubeconfig, e.Namespace, "--health-probe-bind-address=127.0.0.1:0")
	<-g.reached
	code, body := p.get("health probes", "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code, body)
	code, _ = p.get("health probes", "/healthz")
	assert.Equal(t, http.StatusOK, code)
	close(g.open)
	p.await("watching Transactions")
	code, body = p.get("health probes", "/readyz")
	assert.Equal(t, http.StatusOK, code, body)
}

func TestEveryLineOfTheLogIsJSON(t *testing.T) {
	e := newEnv(t)
	p := startJanusd(t, e, "--leader-elect", "--log-format=json", "--log-level=debug")
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.exit())
	fromClientGo := 0
	for _, line := range p.log() {
		var fields entry
		require.NoError(t, json.Unmarshal(line, &fields), "%s", line)
		for _, key := range []string{"level", "time", "msg"} {
			assert.NotEmpty(t, fields[key], "%s of %s", key, line)
		}
		if logger, _ := fields["logger"].(string); strings.HasPrefix(logger, "client-go") {
			fromClientGo++
		}
	}
	assert.Positive(t, fromClientGo, "client-go says something about leader election")
	for _, change := range p.entries("phase changed") {
		for _, key := range []string{"namespace", "name", "uid", "phase", "from", "version"} {
			assert.Contains(t, change, key)
		}
	}
	assert.Len(t, p.entries("phase changed"), 3)
}

func TestAnotherReplicaTakesOverFromOneThatWasKilled(t *testing.T) {
	e := newEnv(t)
	const lease = 3 * time.Second
	g := newGate(t, patchOf("b"))
	first := startWith(t, g.kubeconfig, e.Namespace, "--leader-elect", "--leader-elect-lease-duration=3s")
	first.await("leading")
	second := startJanusd(t, e, "--leader-elect", "--leader-elect-lease-duration=3s", "--metrics-bind-address=127.0.0.1:0")
	second.await("waiting to lead")
	e.Submit("deploy", changes)
	<-g.reached // the leader is in the middle of it

	assert.Empty(t, second.entries("leading"), "only one works")
	_, body := second.get("metrics", "/metrics")
	assert.Contains(t, body, "\n"+`leader_election_master_status{name="janusd-leader"} 0`)
	require.Equal(t, []api.ItemState{api.ItemCommitting, api.ItemCommitting}, states(e.Transaction("deploy")), "what it has made it has in flight")

	killed := time.Now()
	first.signal(syscall.SIGKILL)
	second.await("leading")
	assert.Less(t, time.Since(killed), lease+5*time.Second)
	committed(t, e, "deploy")
}

func TestAReplicaThatStopsHandsOverAtOnce(t *testing.T) {
	e := newEnv(t)
	first := startJanusd(t, e, "--leader-elect", "--leader-elect-lease-duration=18s")
	first.await("leading")
	second := startJanusd(t, e, "--leader-elect", "--leader-elect-lease-duration=18s")
	second.await("waiting to lead")
	stopped := time.Now()
	first.signal(syscall.SIGTERM)
	require.Equal(t, 0, first.exit())
	second.await("leading")
	// It asks every three seconds or a little more, and need not wait for the expiry.
	assert.Less(t, time.Since(stopped), 12*time.Second)
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
}

func TestAReplicaThatLosesTheLeaseEnds(t *testing.T) {
	e := newEnv(t)
	g := newGate(t, func(*http.Request) bool { return false })
	p := startWith(t, g.kubeconfig, e.Namespace, "--leader-elect", "--leader-elect-lease-duration=3s")
	p.await("leading")
	g.cut.Store(true)
	assert.Equal(t, 1, p.exit())
	log := p.log()
	assert.Contains(t, string(log[len(log)-1]), "the leader Lease "+e.Namespace+"/janusd-leader was lost")
}

func TestAReplicaThatWaitsToLeadStopsAtOnce(t *testing.T) {
	e := newEnv(t)
	startJanusd(t, e, "--leader-elect").await("leading")
	second := startJanusd(t, e, "--leader-elect")
	second.await("waiting to lead")
	second.signal(syscall.SIGTERM)
	assert.Equal(t, 0, second.exit())
	assert.NotEmpty(t, leader(t, e), "the Lease is the other's")
}

func TestWatchNamespacesLimitsWhatIsRun(t *testing.T) {
	e, other := newEnv(t), newEnv(t)
	other.Submit("deploy", changes)
	startJanusd(t, e)
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
	assert.Empty(t, other.Transaction("deploy").Finalizers, "it was not touched")
	assert.Empty(t, other.Transaction("deploy").Status.Phase)

	startJanusd(t, e, "--watch-namespaces="+other.Namespace) // both are watched: the flag adds up
	committed(t, other, "deploy")
}

func TestTwoJanusdWithoutLeaderElectionDoNoHarm(t *testing.T) {
	e := newEnv(t)
	startJanusd(t, e)
	startJanusd(t, e)
	for _, name := range []string{"one", "two", "three"} {
		e.Submit(name, changes)
	}
	for _, name := range []string{"one", "two", "three"} {
		e.Ended(name)
		e.ClearedUp(name)
		committed(t, e, name)
	}
}

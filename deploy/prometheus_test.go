package deploy_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// TestTheDashboardAndTheAlertsWorkOnRealMetrics has Prometheus scrape janusd as the pages say, while
// Transactions commit, fail and wait: every query of the dashboard has an answer, every rule is
// evaluated, and what fails reaches a chat by the example for Alertmanager.
func TestTheDashboardAndTheAlertsWorkOnRealMetrics(t *testing.T) {
	s := newScene(t)
	withPackages(t)
	chat := newChat(t)
	address := s.monitoredJanusd()
	p := s.prometheus(address, alertmanager(t, chat.URL))
	s.Apply(before)
	// What runs for more than a minute is named then, and half of its time is over.
	s.Submit("slow", `{timeout: 2m, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: slow}, type: Create, content: {},
		readyWhen: {expression: "has(object.data)", timeout: 1h}}]}`)
	s.Until("Prometheus has seen a janusd", func() bool { return p.answers("janus_build_info") })
	s.Run("invalid", `changes: [{target: {apiVersion: v1, kind: NoSuchKind, name: x}, type: Delete}]`)

	open := dashboardQueries(t)
	require.Greater(t, len(open), 25)
	for i := 0; len(open) > 0; i++ {
		name := "release-" + strconv.Itoa(i)
		txn := s.Run(name, release)
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		require.Nil(t, s.Transaction("slow").Status.CompletionTime, "no answer before it ended: %q", open)
		open = slices.DeleteFunc(open, func(q query) bool { return p.answers(q.expression) || q.unused })
	}
	assert.Contains(t, p.values("transaction_namespace", "janus_namespace_transactions"), s.Namespace, "the variable of the dashboard")
	assert.Equal(t, []string{s.Namespace + "/slow"}, p.names(`topk(10, janus_transaction_running_seconds)`, "transaction_namespace", "transaction"))
	assert.Equal(t, []string{"NotReady"}, p.names(`janus_transactions_past_half_timeout > 0`, "reason"))
	p.evaluatesAll(len(alertRules(t)))
	assert.Equal(t, "[FIRING] JanusTransactionsFail", chat.title())
	assert.Equal(t, "A Transaction failed without a rollback. Nothing was changed, or with onFailure Continue a part of its changes is in effect.\n"+
		"What to do: https://janus.io/janus/docs/runbooks/alerts.md#janustransactionsfail\n"+
		"Which Transaction: kubectl get txn -A --sort-by=.status.completionTime", chat.text())
}

// query is one of a panel.
type query struct {
	expression string
	// unused is one about PackageTransactions, of which there are none here.
	unused bool
}

// dashboardQueries are those of the dashboard, as Grafana sends them.
func dashboardQueries(t *testing.T) (out []query) {
	t.Helper()
	text, err := os.ReadFile("monitoring/dashboard.json")
	require.NoError(t, err)
	var dashboard struct{ Panels []panel }
	require.NoError(t, json.Unmarshal(text, &dashboard))
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			out = append(out, query{
				expression: strings.NewReplacer("$__rate_interval", "1m", "$namespace", ".*").Replace(target.Expr),
				unused:     strings.Contains(target.Expr, "janus_package_"),
			})
		}
	}
	return out
}

// monitoredJanusd starts janusd as deploy has it, with the component of packages, and returns where it
// serves its metrics.
func (s *scene) monitoredJanusd() string {
	s.t.Helper()
	deployment := into[appsv1.Deployment](s.t, installation{objects: withComponent(s.t, ".", "packages")}.find(s.t, "Deployment", "janusd"))
	args := append(slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args), "--kubeconfig="+s.kubeconfig("janusd"),
		"--watch-namespaces="+s.Namespace, "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0")
	janusd := harness.RunProgram(s.t, exec.Command(harness.BuildJanusd(s.t), args...))
	s.t.Cleanup(func() { endProgram(janusd) })
	var address string
	s.Until("janusd serves its metrics", func() (ok bool) {
		address, ok = janusd.Field("serving metrics", "address")
		return ok
	})
	return address
}

func endProgram(p *harness.Program) {
	p.Signal(9)
	<-p.Ended()
}

// monitoringProgram is a program that make puts into bin, or that is installed.
func monitoringProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../bin/" + name)
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		path, err = exec.LookPath(name)
		require.NoError(t, err, "%s is needed: run make promtool", name)
	}
	return path
}

// freeAddress is one at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

package packages

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/ui"
	"janus.io/janus/test/testcluster"
)

const confirmed = `{type: Create, target: {apiVersion: v1, kind: ConfigMap, name: confirmed}, content: {data: {a: b}}, readyWhen: {expression: "has(object.data.yes)"}}`

var servingAt = regexp.MustCompile(`"serving metrics","address":"([^"]+)"`)

// look asks the page for something, with the token of a viewer.
func (j *janusd) look(path, token string) (code int, whole ui.Detail) {
	j.d.t.Helper()
	var at []string
	require.Eventually(j.d.t, func() bool { at = servingAt.FindStringSubmatch(j.Log()); return at != nil }, patience, 50*time.Millisecond)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the certificate is self-signed
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(j.d.t.Context(), http.MethodGet, "https://"+at[1]+path, nil)
	require.NoError(j.d.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(r)
	require.NoError(j.d.t, err)
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusOK {
		require.NoError(j.d.t, json.NewDecoder(answer.Body).Decode(&whole))
	}
	return answer.StatusCode, whole
}

// TestThePage looks at a Transaction on the page with exactly the rights that the chart gives:
// to janusd for the page, and to who may see it.
func TestThePage(t *testing.T) {
	helm, err := testcluster.Helm()
	require.NoError(t, err)
	for title, values := range map[string]string{"all namespaces": "", "some namespaces": " --values examples/namespaced/values.yaml"} {
		t.Run(title, func(t *testing.T) {
			d := newDesk(t)
			require.NoError(t, d.shell.Provide("helm", helm))
			before := d.everything()
			d.run("kubectl create namespace orders && kubectl create namespace janus-system")
			d.run("helm install janus deploy/chart/janus --namespace janus-system --set ui.enabled=true" + values)
			d.run(rollout)
			d.run("kubectl apply -f - <<'END'" + fixture + "END")
			janusd := startJanusd(d)
			d.run("kubectl create serviceaccount look && kubectl create clusterrolebinding look --clusterrole=janus-ui-viewer --serviceaccount=default:look")
			token := d.run("kubectl create token look")

			d.submit("orders", "waits", "orders-sa", confirmed)
			d.until("kubectl get txn waits -n orders -o jsonpath='{.status.conditions[?(@.type==\"Ready\")].reason}'", "NotReady")
			var code int
			var whole ui.Detail
			require.Eventually(t, func() bool {
				code, whole = janusd.look("/ui/api/transactions/orders/waits", token)
				return code == http.StatusOK && len(whole.Events) > 0
			}, patience, 200*time.Millisecond, "the right takes effect, and events are written, some moments later")
			assert.Empty(t, whole.Unread, "what janusd may not read for the page")
			require.Len(t, whole.Locks, 1)
			assert.Equal(t, "orders/waits", whole.Locks[0].Holder)
			code, _ = janusd.look("/metrics", token)
			assert.Equal(t, http.StatusForbidden, code, "who may see the page may do nothing else")

			d.run(`kubectl patch configmap confirmed -n orders --type=merge -p '{"data": {"yes": "it is"}}'`)
			require.Equal(t, v1alpha1.PhaseCommitted, d.ended("orders", "waits").Phase)
			d.run("kubectl delete txn --all -n orders --timeout=1m")
			d.run("helm uninstall janus --namespace janus-system --wait")
			d.run("kubectl delete crd transactions.backup.janus.io && kubectl delete namespace orders janus-system")
			d.run("kubectl delete clusterrolebinding packages-test look && kubectl delete serviceaccount look")
			d.same(before, nil)
		})
	}
}

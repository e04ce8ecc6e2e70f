package ui

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

// What a person may do next depends on how a Transaction is, and each command names its namespace.
func TestTheCommandsLeadOnFromHere(t *testing.T) {
	texts := func(txn *api.Transaction) (out []string) {
		for _, c := range commandsOf(txn) {
			out = append(out, c.Text)
		}
		return out
	}
	txn := transaction("release-2", api.PhaseCommitting)
	assert.Equal(t, []string{"kubectl janus wait release-2 -n shop", "kubectl janus cancel release-2 -n shop", "kubectl janus describe release-2 -n shop"}, texts(txn))
	txn.Spec.Suspend, txn.Status.Approval = true, &api.ApprovalStatus{Digest: "d"}
	assert.Equal(t, []string{"kubectl janus approve release-2 -n shop", "kubectl janus resume release-2 -n shop"}, texts(txn)[:2])
	txn.Status.Phase = api.PhaseFailed
	assert.Equal(t, "kubectl janus retry release-2 -n shop", texts(txn)[0])
	txn.Status.Items = []api.Item{{State: api.ItemUnresolved}}
	assert.Equal(t, "kubectl janus recover release-2 -n shop", texts(txn)[0])
	txn.Status.Phase, txn.Status.RevisionDigest = api.PhaseCommitted, "sha256:1"
	assert.Equal(t, []string{"kubectl janus undo release-2 -n shop", "kubectl janus history release-2 -n shop", "kubectl janus describe release-2 -n shop"}, texts(txn))
}

// A spec may name anything; a shell takes none of it for a command.
func TestACommandIsQuotedForAShell(t *testing.T) {
	web := api.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	assert.Equal(t, "kubectl get deployments.apps/web -n shop -o yaml", showing(web, "deployments"))
	assert.Equal(t, "kubectl get deployment.apps/web -n shop -o yaml", showing(api.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, "deployment"))
	assert.Equal(t, "kubectl get 'configmap/$(rm -r ~)'\\''; x' -o yaml", showing(api.Target{Kind: "ConfigMap", Name: "$(rm -r ~)'; x"}, ""))
	assert.Equal(t, "kubectl get 'configmap/a b' -n 'c d' -o yaml", showing(api.Target{Kind: "ConfigMap", Name: "a\nb", Namespace: "c\td"}, ""))
	assert.Empty(t, showing(api.Target{Kind: "--kubeconfig=x", Name: "a"}, ""))
	assert.Empty(t, showing(api.Target{Kind: "ConfigMap", Namespace: "--all", Name: "a"}, ""))
}

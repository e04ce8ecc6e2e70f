package ordering

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// A change that sets a Deployment back to the template before a rollout that has failed becomes ready,
// though the Deployment says for a moment that the rollout has failed.
func TestAFailedRolloutIsMended(t *testing.T) {
	t.Parallel()
	mend(t, `
serviceAccountName: deployer
changes:
- type: Patch
  target: {apiVersion: apps/v1, kind: Deployment, name: web}
  content: {spec: {template: {spec: {nodeSelector: {kubernetes.io/os: linux}}}}}
  readyWhen: {status: Ready, timeout: 1m}
`)
}

// So does one that an Await waits for, which comes after the change.
func TestAFailedRolloutIsMendedBeforeAnAwait(t *testing.T) {
	t.Parallel()
	mend(t, `
serviceAccountName: deployer
changes:
- type: Patch
  target: {apiVersion: apps/v1, kind: Deployment, name: web}
  content: {spec: {template: {spec: {nodeSelector: {kubernetes.io/os: linux}}}}}
- type: Await
  target: {apiVersion: apps/v1, kind: Deployment, name: web}
  readyWhen: {status: Ready, timeout: 1m}
`)
}

// mend has a rollout fail, and a Transaction set it back.
func mend(t *testing.T, spec string) {
	t.Helper()
	e := harness.New(t)
	e.Start()
	const web = "apps/v1 Deployment/web"
	e.Apply(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  progressDeadlineSeconds: 5
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "example.com/web:1"}], nodeSelector: {kubernetes.io/os: linux}}}
`)
	e.Until("the Deployment is available", func() bool { return field(e, web, "status", "availableReplicas") == "1" })
	e.Merge("person", web, `{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"none"}}}}}`)
	e.Until("the rollout has failed", func() bool {
		for _, c := range e.Object(web).Object["status"].(map[string]any)["conditions"].([]any) {
			if c.(map[string]any)["reason"] == "ProgressDeadlineExceeded" {
				return true
			}
		}
		return false
	})
	txn := e.Run("mend", spec)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "1", field(e, web, "status", "availableReplicas"))
}

package input

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// beyond is how much longer than its timeout a Transaction may take. The attempts before take
// 13 to 19 s, and the wait after them 13 to 19 s more.
const (
	timeLimit = 20 * time.Second
	beyond    = 5 * time.Second
)

// blackHole has the API server refuse all writes of the objects of the namespace that are
// labelled so, because it cannot ask a webhook.
func blackHole(t *testing.T, e *harness.Env) {
	t.Helper()
	e.Apply(strings.ReplaceAll(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS}
webhooks:
- name: all.janus.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 1
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  objectSelector: {matchLabels: {webhook: asked}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}]
  clientConfig: {service: {namespace: NS, name: none}}
`, "NS", e.Namespace))
	t.Cleanup(func() {
		assert.NoError(t, e.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.Background(), e.Namespace, metav1.DeleteOptions{}))
	})
}

func TestTheTimeoutIsKeptWhileAttemptsFail(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {v: "1"}}`)
	blackHole(t, e)
	e.Start()
	txn := e.Run("late", `
timeout: 20s
changes:
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: app}, content: {metadata: {labels: {webhook: asked}}}}
`)
	_, reason, _ := harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, errclass.DeadlineExceeded, reason, harness.Describe(txn))
	assert.LessOrEqual(t, txn.Status.CompletionTime.Sub(txn.Status.StartTime.Time), timeLimit+beyond)
}

func TestTheTimeoutIsKeptInARollbackToo(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app, labels: {webhook: asked}}, data: {v: "1"}}`)
	e.Start(harness.WithPolicy(plan.Policy{SettleTime: harness.FastPolicy.SettleTime}))
	e.Submit("late", `
timeout: 20s
changes:
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: app}, content: {data: {v: "2"}}}
- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: gate}, content: {data: {a: b}}, readyWhen: {expression: has(object.data.go)}}
`)
	e.Until("the gate is made", func() bool { return e.Object("ConfigMap/gate") != nil })
	blackHole(t, e)
	// The API server needs a moment until it asks the webhook.
	e.Until("the webhook is asked", func() bool {
		err := e.ApplyYAML(e.Context(), e.Namespace, `{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, labels: {webhook: asked}}, data: {t: "`+time.Now().String()+`"}}`)
		return err != nil
	})
	_, err := e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).Patch(t.Context(), "late", "application/merge-patch+json",
		[]byte(`{"spec":{"cancel":"Rollback"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	txn := e.Ended("late")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.DeadlineExceeded, txn.Status.Items[0].Reason)
	assert.LessOrEqual(t, txn.Status.CompletionTime.Sub(txn.Status.RollbackStartTime.Time), timeLimit+beyond)
}

package ownership

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// everywhere binds the ServiceAccount of a test to all rights, until the test ends.
func everywhere(t *testing.T, e *harness.Env) {
	t.Helper()
	admin := newOutsider(t, e, "kubectl")
	admin.dropWhenDone(admin.make("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: " + e.Namespace + "}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: deployer, namespace: " + e.Namespace + "}]}"))
}

// The aggregation controller takes the rules of a ClusterRole that became an aggregated
// one. They are rolled back with it: nobody keeps rights that came with the change.
func TestRulesThatTheControllerAggregatedBecauseOfAChangeAreRolledBack(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	everywhere(t, e)
	someone := newOutsider(t, e, "kubectl")
	named := strings.NewReplacer("$NS", e.Namespace).Replace
	ops := someone.make(named("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $NS-ops}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"))
	someone.dropWhenDone(ops)
	someone.dropWhenDone(someone.make(named("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $NS-part, labels: {into: $NS}}, rules: [{apiGroups: [''], resources: [services], verbs: [get]}]}")))
	ref := named("rbac.authorization.k8s.io/v1 ClusterRole/$NS-ops")
	before := e.Object(ref)
	e.Start(harness.Acting(harness.Around{Do: func(_ string, item int) {
		if item == 1 {
			e.Until("the controller has collected the rules", func() bool {
				rules, _ := field(t, e.Object(ref), "rules").([]any)
				return len(rules) == 1 && strings.Contains(strings.Join(managersOf(e.Object(ref)), " "), "aggregation")
			})
		}
	}}))

	txn := e.Run("aggregate", named("changes:\n  - {target: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: $NS-ops}, type: Update, content: {aggregationRule: {clusterRoleSelectors: [{matchLabels: {into: $NS}}]}, rules: []}}")+fixture.RefusedAtCommit)

	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Empty(t, txn.Status.Items[0].Conflicts)
	e.Same(before, ref)
}

// What injects certificate authorities makes a created configuration nobody else's.
func TestACreatedWebhookIsUndoneThoughItsAuthorityWasInjected(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	everywhere(t, e)
	create := strings.NewReplacer("$NS", e.Namespace).Replace(`
changes:
  - {type: Create, target: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, name: $NS}, content: {webhooks: [{name: check.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, rules: [{apiGroups: [none.example.com], apiVersions: [v9], operations: [CREATE], resources: [nothings]}], clientConfig: {service: {namespace: none, name: none}}}]}}`)
	ref := "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration/" + e.Namespace
	inject := func() {
		_, err := e.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(t.Context(), e.Namespace, types.JSONPatchType,
			[]byte(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"}]`),
			metav1.PatchOptions{FieldManager: "cert-manager-cainjector"})
		assert.NoError(t, err)
	}
	e.Start(harness.Acting(harness.Around{Do: func(txn string, item int) {
		if item == 1 && strings.Contains(txn, "webhooks") {
			inject()
		}
	}}))

	txn := e.Run("webhooks", create+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Empty(t, txn.Status.Items[0].Conflicts)
	assert.Nil(t, e.Object(ref))

	committedAll(t, e.Run("keep", "revisionHistoryLimit: 10"+create))
	inject()
	committedAll(t, e.Run("undo", "{undoOf: {name: keep}}"))
	assert.Nil(t, e.Object(ref))
}

// The API server counts the templates of a DaemonSet, and anyone who has created the object
// owns the count.
func TestADaemonSetIsUndoneThoughItWasRestarted(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	kubectlApply(t, e, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: 'example.com/a:1'}]}}}}")
	e.Start()
	const ref = "apps/v1 DaemonSet/agent"
	const change = `
changes:
  - {target: {apiVersion: apps/v1, kind: DaemonSet, name: agent}, type: Patch, content: {spec: {template: {spec: {containers: [{name: a, image: "example.com/a:2"}]}}}}}`
	image := func() any {
		return field(t, e.Object(ref), "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["image"]
	}

	txn := e.Run("two", change+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Empty(t, txn.Status.Items[0].Reason, harness.Describe(txn))
	assert.Empty(t, txn.Status.Items[0].Reclaimed)
	assert.Equal(t, "example.com/a:1", image())

	committedAll(t, e.Run("keep", "revisionHistoryLimit: 10"+change))
	_, err := kubectl(t, e, "", "rollout", "restart", "daemonset/agent")
	require.NoError(t, err)
	committedAll(t, e.Run("undo", "{undoOf: {name: keep}}"))
	assert.Equal(t, "example.com/a:1", image())
	assert.Contains(t, field(t, e.Object(ref), "spec", "template", "metadata", "annotations"), "kubectl.kubernetes.io/restartedAt")
}

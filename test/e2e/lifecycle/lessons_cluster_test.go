package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

func statusWrites(e *harness.Env) int {
	return len(testcluster.Filter(e.Audit(), testcluster.InNamespace(e.Namespace), func(r testcluster.AuditEvent) bool {
		return r.Resource == "transactions" && r.Subresource == "status"
	}))
}

func TestServiceAccountDeletedInMidCommitEndsAfterABoundedNumberOfWrites(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	policy := harness.FastPolicy
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(1), func() {
		require.NoError(t, e.Kube.CoreV1().ServiceAccounts(e.Namespace).Delete(t.Context(), "deployer", metav1.DeleteOptions{}))
	})}))
	e.Submit("txn", fixture.PatchAB)

	txn := e.Await("txn", "Failed for good", func(txn *api.Transaction) bool {
		return txn.Status.Phase == api.PhaseFailed && txn.Status.Recoveries == policy.Recoveries
	})

	assert.Equal(t, plan.Nothing, plan.Decide(txn, plan.InFlight{}, time.Now().Add(24*time.Hour), policy).Verb)
	assert.Equal(t, errclass.ServiceAccountGone, txn.Status.Items[0].Reason, harness.Describe(txn))
	assert.LessOrEqual(t, statusWrites(e), 10+4*int(policy.Recoveries))
	e.NothingLeft("txn")
}

func TestAControllerThatBumpsTheResourceVersionIsNoConflict(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(before)
	e.Refuse()
	deployment := "apps/v1 Deployment/web-server"
	observed := func() bool {
		obj := e.Object(deployment)
		seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
		return seen == obj.GetGeneration()
	}
	e.Until("the controller has written the status", observed)
	old := e.Object(deployment)
	waited := false
	e.Start(harness.Acting(harness.Around{Undo: func(string, int) {
		if !waited {
			waited = true
			e.Until("the controller has written the status again", observed)
			assert.Greater(t, e.Object(deployment).GetGeneration(), old.GetGeneration())
		}
	}}))

	txn := e.Run("txn", `
changes:
  - target: {apiVersion: apps/v1, kind: Deployment, name: web-server}
    type: Patch
    content: {spec: {template: {spec: {containers: [{name: web, image: "myapp:v2.0"}]}}}}
`+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(old, deployment)
	assert.LessOrEqual(t, statusWrites(e), 12)
}

// The write falls between the response to Janus' patch and whatever Janus does next.
func TestAPersonsWriteJustAfterOurPatchIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	e.Start(harness.Recording(harness.Journaling{Before: harness.Once(harness.Committed(1), func() {
		e.Merge("person", "ConfigMap/a", `{"data": {"version": "person's"}}`)
	})}))

	txn := e.Run("txn", fixture.PatchAB+fixture.RefusedAtCommit)

	assert.Equal(t, "person's", e.Value("ConfigMap/a", "data", "version"))
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, txn.Status.Items[0].Message, ".data.version")
	assert.Contains(t, txn.Status.Items[0].Message, "person")
	assert.Equal(t, "1", e.Value("ConfigMap/b", "data", "version"))
}

func TestAUserWithViewCannotReadTheSecretOutOfTheBeforeImage(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(before)
	looked := false
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.InPhase(api.PhaseCommitting), func() {
		looked = true
		configMaps, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, c := range configMaps.Items {
			text := fmt.Sprint(c)
			assert.NotContains(t, text, "canary-7f3a")
			assert.NotContains(t, text, "Y2FuYXJ5LTdmM2E", "ConfigMap %s", c.Name)
		}
		assert.NotNil(t, e.Object("Secret/deploy-rollback"))
	})}))

	txn := e.Run("deploy", deploy)

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.True(t, looked)
}

func TestWhoMayOnlyEditConfigMapsCannotChangeTheBeforeImage(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(2), func() {
		image := e.Object("ConfigMap/txn-rollback")
		data := map[string]any{}
		for key, value := range image.Object["data"].(map[string]any) {
			data[key] = strings.ReplaceAll(value.(string), `"version":"1"`, `"version":"evil"`)
		}
		require.NotEqual(t, image.Object["data"], data)
		e.Merge("person", "ConfigMap/txn-rollback", `{"metadata": {"finalizers": null}}`)
		require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "txn-rollback", metav1.DeleteOptions{}))
		image.Object["data"] = data
		image.SetResourceVersion("")
		client, err := e.For(image.GroupVersionKind(), e.Namespace)
		require.NoError(t, err)
		_, err = client.Create(t.Context(), image, metav1.CreateOptions{})
		require.NoError(t, err)
	})}))

	txn := e.Run("txn", fixture.PatchAB+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, []string{errclass.BeforeImageTampered, errclass.BeforeImageLost}, txn.Status.Items[0].Reason)
	assert.Equal(t, "2", e.Value("ConfigMap/a", "data", "version"))
	assert.Equal(t, "2", e.Value("ConfigMap/b", "data", "version"))
}

func TestTwelveObjectsOfAHundredKilobytes(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	var spec strings.Builder
	spec.WriteString("changes:\n")
	for i := range 12 {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: big-%d}, data: {version: \"1\", big: %q}}", i, strings.Repeat("x", 100<<10)))
		fmt.Fprintf(&spec, "  - {target: {apiVersion: v1, kind: ConfigMap, name: big-%d}, type: Patch, content: {data: {version: \"2\"}}}\n", i)
	}
	e.Start()
	old := e.Object("ConfigMap/big-7")

	txn := e.Run("txn", spec.String()+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Greater(t, len(txn.Status.RollbackRef.Objects), 1)
	e.Same(old, "ConfigMap/big-7")
	e.NothingLeft("txn")
}

// A worker that read its own state from a cache would do what it has done already.
func TestNoMutationIsReplayedInAHealthyRun(t *testing.T) {
	e := harness.New(t)
	var spec strings.Builder
	spec.WriteString("changes:\n")
	const n = 40
	for i := range n {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}", i))
		fmt.Fprintf(&spec, "  - {target: {apiVersion: v1, kind: ConfigMap, name: c-%d}, type: Patch, content: {data: {version: \"2\"}}}\n", i)
	}
	e.Start()

	txn := e.Run("txn", spec.String())

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	patches := testcluster.Filter(e.Audit(), testcluster.InNamespace(e.Namespace), testcluster.OnResource("", "configmaps"),
		testcluster.ByVerb("patch"), func(r testcluster.AuditEvent) bool {
			return !r.DryRun && r.ImpersonatedUser != "" && strings.Contains(r.RequestURI, "fieldManager=janus-")
		})
	assert.Len(t, patches, n)
	conflicts := testcluster.Filter(e.Audit(), testcluster.InNamespace(e.Namespace), func(r testcluster.AuditEvent) bool { return r.Code == 409 })
	assert.Empty(t, conflicts)
}

func TestConfigMapsAreNeitherListedNorWatched(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	j := e.Start()
	txn := e.Run("txn", fixture.PatchAB)
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	j.Stop()

	// The log has a watch when it has ended, and what other tests have done in their
	// namespaces.
	watched := map[string]bool{}
	own := func(r testcluster.AuditEvent) bool {
		return r.ImpersonatedUser == "" && (r.Namespace == "" || r.Namespace == e.Namespace)
	}
	for _, r := range testcluster.Filter(e.Audit(), testcluster.ByVerb("list", "watch"), own) {
		watched[r.Resource] = true
	}
	delete(watched, "transactions")
	delete(watched, "leases")
	assert.Empty(t, watched)
}

func TestAddingTheFinalizerLeavesTheSpecAsTheUserWroteIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Submit("txn", "timeout: 5m\n"+fixture.PatchAB)
	written := e.Object(harness.TransactionRef + "txn")
	e.Start()

	txn := e.Ended("txn")

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	now := e.Object(harness.TransactionRef + "txn")
	assert.Equal(t, written.Object["spec"], now.Object["spec"])
	assert.Equal(t, written.GetGeneration(), now.GetGeneration())
	assert.Equal(t, "5m", e.Value(harness.TransactionRef+"txn", "spec", "timeout"))
}

func TestANamespaceAndAnObjectInItInOneTransaction(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	made := e.Namespace + "-made"
	e.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + e.Namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: ` + e.Namespace + `}]
`)
	e.Start()

	txn := e.Run("txn", `
changes:
  - target: {apiVersion: v1, kind: Namespace, name: `+made+`}
    type: Create
    content: {}
  - target: {apiVersion: v1, kind: ConfigMap, namespace: `+made+`, name: in-it}
    type: Create
    content: {data: {a: b}}
`)

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "b", e.In(made).Value("ConfigMap/in-it", "data", "a"))
	e.NothingLeft("txn")
	require.NoError(t, e.Kube.CoreV1().Namespaces().Delete(t.Context(), made, metav1.DeleteOptions{}))
}

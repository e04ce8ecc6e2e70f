package concurrency

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/lockmgr"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// exclude runs two Transactions on one target from two namespaces. While the first
// is in the middle of its changes, the second must wait for it and say so.
func exclude(t *testing.T, names [2]string, spec func(first *harness.Env) string) {
	t.Helper()
	one, two := harness.New(t), harness.New(t)
	for _, e := range []*harness.Env{one, two} {
		e.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + e.Namespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: ` + e.Namespace + `}]
`)
	}
	one.Apply(fixture.AB)
	middle, goOn := make(chan struct{}), make(chan struct{})
	one.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.InPhase(api.PhaseCommitting), func() {
		close(middle)
		<-goOn
	})}))
	two.Start()
	one.Submit(names[0], spec(one))
	<-middle

	two.Submit(names[1], spec(one))

	waiting := two.Await(names[1], "waiting for the lock", func(txn *api.Transaction) bool {
		_, reason, _ := harness.Condition(txn, api.ConditionLocked)
		return reason == errclass.LockHeld
	})
	_, _, message := harness.Condition(waiting, api.ConditionLocked)
	assert.Contains(t, message, "it is held by Transaction "+one.Namespace+"/"+names[0]+" (since ")
	close(goOn)
	for _, txn := range []*api.Transaction{one.Ended(names[0]), two.Ended(names[1])} {
		assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	}
	one.NothingLeft(names[0])
	two.NothingLeft(names[1])
}

func TestTwoTransactionsOfOneNameInTwoNamespacesDoNotHoldALockTogether(t *testing.T) {
	t.Parallel()
	exclude(t, [2]string{"same", "same"}, func(first *harness.Env) string {
		return `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: a, namespace: ` + first.Namespace + `}
    type: Patch
    content: {data: {version: "2"}}
`
	})
}

func TestTwoTransactionsInTwoNamespacesDoNotLockOneClusterRole(t *testing.T) {
	t.Parallel()
	exclude(t, [2]string{"one", "two"}, func(first *harness.Env) string {
		first.Apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: \"janus-e2e:" + first.Namespace + "\"}}")
		return `
changes:
  - target: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: "janus-e2e:` + first.Namespace + `"}
    type: Patch
    content: {metadata: {labels: {x: "y"}}}
`
	})
}

func TestOppositeLockOrderMakesNobodyFail(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	applyMaps(e)
	e.Start()
	for n := range 4 {
		e.Submit(fmt.Sprint("txn-", n), crossing(n, maps))
	}
	for n := range 4 {
		txn := e.Ended(fmt.Sprint("txn-", n))
		assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	}
}

func TestAnExpiredLeaseWithoutLabelsIsTakenOver(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	key := lockmgr.Key{ID: objectid.ID{Resource: "configmaps", Namespace: e.Namespace, Name: "a"}, Kind: "ConfigMap"}
	e.Apply(`
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: "` + key.LeaseName() + `"}
spec: {holderIdentity: somebody, leaseDurationSeconds: 1, renewTime: "2020-01-01T00:00:00.000000Z"}
`)
	e.Start()

	txn := e.Run("txn", fixture.PatchAB)

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	leases, err := e.Kube.CoordinationV1().Leases(e.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, leases.Items)
}

package input

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/lockmgr"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// leaseOfApp takes the lock of ConfigMap app as another client.
func leaseOfApp(t *testing.T, e *harness.Env, holder string, seconds int32) string {
	t.Helper()
	key := lockmgr.Key{ID: objectid.ID{Resource: "configmaps", Namespace: e.Namespace, Name: "app"}, Kind: "ConfigMap"}
	now := &metav1.MicroTime{Time: time.Now()}
	_, err := e.Kube.CoordinationV1().Leases(e.Namespace).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: key.LeaseName()},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To(seconds), AcquireTime: now, RenewTime: now,
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return key.LeaseName()
}

// waitsFor waits until the Transaction says whose lock it waits for.
func waitsFor(t *testing.T, e *harness.Env, name, holder string) {
	t.Helper()
	txn := e.Await(name, "waiting for a lock", func(txn *api.Transaction) bool {
		_, reason, _ := harness.Condition(txn, api.ConditionLocked)
		return reason == "LockHeld"
	})
	for _, kind := range []string{api.ConditionLocked, api.ConditionReconciling, api.ConditionReady} {
		_, reason, message := harness.Condition(txn, kind)
		assert.Equal(t, "LockHeld", reason, kind)
		for _, part := range []string{"configmaps " + e.Namespace + "/app", "is held by " + holder, "waiting until it is released or expires, ", " after its last renewal; ", " can't wait"} {
			assert.Contains(t, message, part, kind)
		}
		assert.NotRegexp(t, `[0-9a-f]{8}-[0-9a-f]{4}-`, message, "no uid")
	}
	event := harness.AwaitEventOf(t, e, txn, "LockHeld")
	assert.Contains(t, event.Note, holder)
}

func TestATransactionWaitsForTheLockOfAPersonAndGoesOnWhenItIsReleased(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	app := e.Object("ConfigMap/app")
	name := leaseOfApp(t, e, "alice@example.com", 3600)
	e.Start()

	e.Submit("patient", fixture.OneChange("Patch", `{data: {version: "2.0"}}`))
	waitsFor(t, e, "patient", "alice@example.com")
	e.Same(app, "ConfigMap/app")
	require.NoError(t, e.Kube.CoordinationV1().Leases(e.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))

	txn := e.Ended("patient")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "2.0", e.Value("ConfigMap/app", "data", "version"))
	e.NothingLeft("patient")
}

func TestATransactionTakesTheLockOfADeadHolderWhenItExpires(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	name := leaseOfApp(t, e, e.Namespace+"/dead/0b5c9e1e-0000-4000-8000-000000000000", 2)
	e.Start()

	e.Submit("successor", fixture.OneChange("Patch", `{data: {version: "2.0"}}`))
	waitsFor(t, e, "successor", "Transaction "+e.Namespace+"/dead (since ")

	txn := e.Ended("successor")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	_, err := e.Kube.CoordinationV1().Leases(e.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "the Lease that was taken over is released: %v", err)
	e.NothingLeft("successor")
}

func TestATransactionWaitsForTheLockOfAnotherAndGoesOnWhenThatEnds(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	release := make(chan struct{})
	e.Start(harness.Acting(harness.Around{Do: func(transaction string, _ int) {
		if transaction == "first" {
			<-release
		}
	}}))

	e.Submit("first", fixture.OneChange("Patch", `{data: {version: "2.0"}}`))
	e.Await("first", "committing", func(txn *api.Transaction) bool { return txn.Status.Phase == api.PhaseCommitting })
	e.Submit("second", fixture.OneChange("Patch", `{data: {version: "3.0"}}`))
	waitsFor(t, e, "second", "Transaction "+e.Namespace+"/first (since ")
	assert.Equal(t, "1.0", e.Value("ConfigMap/app", "data", "version"))
	close(release)

	first, second := e.Ended("first"), e.Ended("second")
	assert.Equal(t, api.PhaseCommitted, first.Status.Phase, harness.Describe(first))
	assert.Equal(t, api.PhaseCommitted, second.Status.Phase, harness.Describe(second))
	assert.Equal(t, "3.0", e.Value("ConfigMap/app", "data", "version"))
	e.NothingLeft("first")
	e.NothingLeft("second")
}

func TestATimeoutEndsTheWaitForALock(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	app := e.Object("ConfigMap/app")
	name := leaseOfApp(t, e, "alice@example.com", 3600)
	e.Start()

	txn := e.Run("hurried", "timeout: 3s\n"+fixture.OneChange("Patch", `{data: {version: "2.0"}}`))

	harness.Ending{Reason: "DeadlineExceeded", Validated: metav1.ConditionTrue, Says: []string{
		"not done within spec.timeout (3s)", "configmaps " + e.Namespace + "/app", "is held by alice@example.com", "released or expires"}}.Check(t, e, txn)
	e.Same(app, "ConfigMap/app")
	e.NothingLeft("hurried")
	_, err := e.Kube.CoordinationV1().Leases(e.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	assert.NoError(t, err, "the Lease of the person stays")
}

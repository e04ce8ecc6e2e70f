package controller

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/controller/progress"
)

// These tests let every request of a PackageTransaction meet every fault, on a model of the API
// server. What is checked is left out, and the Transactions are run by the test.

// The faults. After a crash another process takes over.
const (
	crashBefore = "crash before"
	crashAfter  = "crash after"
	lostReply   = "lost reply"
	conflict    = "409"
	failure     = "500"
	falseAbsent = "false 404"
	twice       = "sent twice"
	beside      = "another process goes on right before"
)

// Those of reads, and those of writes.
var (
	ofReads  = []string{crashBefore, failure, falseAbsent, beside}
	ofWrites = []string{crashBefore, crashAfter, lostReply, conflict, failure, twice, beside}
)

// everywhere runs a scenario without a fault, and then with every fault at every request.
func everywhere(t *testing.T, scenario func(t *testing.T, fault string, at int) (requests []string)) {
	t.Helper()
	var requests []string
	t.Run("no fault", func(t *testing.T) { requests = scenario(t, "", -1) })
	require.Greater(t, len(requests), 10)
	for at, method := range requests {
		faults := ofWrites
		if method == http.MethodGet {
			faults = ofReads
		}
		for _, fault := range faults {
			t.Run(fmt.Sprintf("%s at request %d, %s", fault, at, method), func(t *testing.T) { scenario(t, fault, at) })
		}
	}
}

func TestAPackageTransactionCommitsWhateverTheFault(t *testing.T) {
	everywhere(t, func(t *testing.T, fault string, at int) []string {
		w := newWorld(t, []string{"one"}, txn.PhaseCommitted)
		requests := w.drive(fault, at, nil)
		p := w.all()[0]
		assert.True(t, meta.IsStatusConditionTrue(p.Status.Conditions, api.Ready), "%+v", p.Status)
		assert.Zero(t, p.Status.Failures)
		assert.EqualValues(t, 1, p.Status.TransactionNumber)
		assert.Equal(t, &api.TransactionRef{Namespace: "shop", Name: w.ledger.made[0]}, p.Status.TransactionRef)
		w.nothingLeft(1)
		w.hasTold(fault, "one AllValidationsPassed", "one InstallationInProgress", "one TransactionComplete")
		return requests
	})
}

func TestARollbackIsCountedOnceAndTriedAgainWhateverTheFault(t *testing.T) {
	everywhere(t, func(t *testing.T, fault string, at int) []string {
		w := newWorld(t, []string{"one"}, txn.PhaseRolledBack, txn.PhaseCommitted)
		requests := w.drive(fault, at, nil)
		p := w.all()[0]
		assert.True(t, meta.IsStatusConditionTrue(p.Status.Conditions, api.Ready), "%+v", p.Status)
		assert.EqualValues(t, 1, p.Status.Failures)
		assert.EqualValues(t, 1, p.Status.TransactionNumber, "it keeps the lock")
		w.nothingLeft(2)
		w.hasTold(fault, "one AllValidationsPassed", "one InstallationInProgress", "one InstallationFailed",
			"one AllValidationsPassed again", "one InstallationInProgress again", "one TransactionComplete")
		return requests
	})
}

func TestTwoPackageTransactionsTakeTurnsWhateverTheFault(t *testing.T) {
	everywhere(t, func(t *testing.T, fault string, at int) []string {
		w := newWorld(t, []string{"one", "two"}, txn.PhaseCommitted)
		waited := false
		requests := w.drive(fault, at, func(int) {
			if all := w.all(); all[0].Status.CompletionTime == nil {
				c := meta.FindStatusCondition(all[1].Status.Conditions, api.Ready)
				waited = waited || c != nil && c.Reason == progress.WaitingForLock && strings.Contains(c.Message, "PackageTransaction one")
			}
		})
		assert.True(t, waited, "it says for whom it waits")
		all := w.all()
		for i, p := range all {
			assert.True(t, meta.IsStatusConditionTrue(p.Status.Conditions, api.Ready), "%+v", p.Status)
			assert.EqualValues(t, i+1, p.Status.TransactionNumber)
		}
		w.nothingLeft(2)
		w.hasTold(fault, "two WaitingForLock", "one AllValidationsPassed", "one InstallationInProgress", "one TransactionComplete",
			"two AllValidationsPassed", "two InstallationInProgress", "two TransactionComplete")
		return requests
	})
}

func TestADeletedPackageTransactionIsRolledBackWhateverTheFault(t *testing.T) {
	everywhere(t, func(t *testing.T, fault string, at int) []string {
		w := newWorld(t, []string{"one"}, txn.PhaseCommitting)
		requests := w.drive(fault, at, func(step int) {
			if step == 2 {
				require.NoError(t, w.admin.Resource(api.Resource).Delete(t.Context(), "one", metav1.DeleteOptions{}))
			}
		})
		assert.Empty(t, w.all())
		assert.LessOrEqual(t, len(w.ledger.made), 1)
		for _, left := range w.transactions() {
			assert.Fail(t, "its Transaction is left", "%+v %+v", left.ObjectMeta, left.Status)
		}
		assert.True(t, w.free())
		assert.LessOrEqual(t, w.told.times("one Cancelled"), 2)
		if fault == "" {
			assert.Equal(t, 1, w.told.times("one Cancelled"))
		}
		return requests
	})
}

// The number is not given twice, though the Lease is deleted.
func TestNoNumberIsGivenTwice(t *testing.T) {
	w := newWorld(t, []string{"one"}, txn.PhaseCommitted)
	w.drive("", -1, nil)
	require.NoError(t, w.kube.CoordinationV1().Leases("janus-system").Delete(t.Context(), lockName, metav1.DeleteOptions{}))
	p := w.all()[0]
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"change": "Delete", "delete": map[string]any{"source": p.Spec.Delete.Source}, "serviceAccountRef": map[string]any{"namespace": "shop", "name": "installer"},
	}}}
	u.SetGroupVersionKind(api.Kind)
	u.SetName("two")
	_, err := w.admin.Resource(api.Resource).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	w.drive("", -1, nil)
	assert.EqualValues(t, 2, w.all()[1].Status.TransactionNumber)
}

// A Transaction of the name that is of another client is not touched.
func TestATransactionOfAnotherIsNotTaken(t *testing.T) {
	w := newWorld(t, []string{"one"}, txn.PhaseCommitted)
	c := w.process(w.ledger)
	stranger, err := c.compiled(w.all()[0], change.Change{Type: change.Install, Root: "xpkg.acme.io/acme/one"})
	require.NoError(t, err)
	stranger.OwnerReferences, stranger.Finalizers = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: types.UID("other")}}, nil
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stranger)
	require.NoError(t, err)
	delete(content, "status")
	_, err = w.admin.Resource(txn.Resource).Namespace("shop").Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.phase(stranger.Name, txn.PhaseCommitted)
	w.drive("", -1, nil)
	p := w.all()[0]
	assert.EqualValues(t, 1, p.Status.Failures, "the attempt whose name was taken")
	assert.True(t, meta.IsStatusConditionTrue(p.Status.Conditions, api.Ready))
	assert.NotEqual(t, stranger.Name, p.Status.TransactionRef.Name)
}

// What has ended is kept as often as is wanted, what has failed longer.
func TestHistoryIsLimited(t *testing.T) {
	w := newWorld(t, []string{"a", "b", "c"}, txn.PhaseCommitted)
	w.drive("", -1, nil)
	c := w.process(w.ledger)
	c.HistoryLimit = 1
	_, err := c.pass(t.Context(), w.listed())
	require.NoError(t, err)
	all := w.all()
	require.Len(t, all, 1)
	assert.Equal(t, "c", all[0].Name)
}

// One that has the finalizer and not the lock is let go of when it is deleted.
func TestWhatDidNotGetTheLockIsLetGo(t *testing.T) {
	w := newWorld(t, []string{"one"}, txn.PhaseCommitted)
	_, err := store{own: w.admin}.hold(t.Context(), w.all()[0])
	require.NoError(t, err)
	require.NoError(t, w.admin.Resource(api.Resource).Delete(t.Context(), "one", metav1.DeleteOptions{}))
	require.Len(t, w.all(), 1)
	_, err = w.process(w.ledger).pass(t.Context(), w.listed())
	require.NoError(t, err)
	assert.Empty(t, w.all())
	assert.Empty(t, w.ledger.made)
}

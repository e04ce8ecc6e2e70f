package random

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/snapshot"
	"janus.io/janus/test/harness"
)

// checkLeft: whatever others have done to what Janus keeps, no finalizer of Janus is
// left on anything, no lock, and no before-image that is the Transaction's, but for
// those kept on purpose and those that another client's finalizer holds.
func (w *fuzzWorld) checkLeft(t *rapid.T, txn *api.Transaction) {
	t.Helper()
	if len(txn.Finalizers) > 0 {
		t.Fatalf("the finalizers %v are left", txn.Finalizers)
	}
	holder := txn.Namespace + "/" + txn.Name + "/" + string(txn.UID)
	for _, namespace := range []string{w.Namespace, w.other.Namespace, harness.SystemNamespace} {
		leases, err := w.Kube.CoordinationV1().Leases(namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, lease := range leases.Items {
			if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity == holder {
				t.Fatalf("the lock %s is left", lease.Name)
			}
		}
	}
	kept := txn.Status.RollbackRef != nil && txn.Status.Phase != api.PhaseCommitted
	for _, kind := range []string{"v1 ConfigMap", "v1 Secret"} {
		list, err := w.Dynamic.Resource(inventoried[kind]).Namespace(w.Namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			checkImageLeft(t, txn, &list.Items[i], kept)
		}
	}
}

func checkImageLeft(t *rapid.T, txn *api.Transaction, obj metav1.Object, kept bool) {
	t.Helper()
	if !strings.HasPrefix(obj.GetName(), txn.Name+"-rollback") {
		return
	}
	for _, f := range obj.GetFinalizers() {
		if f == snapshot.Finalizer {
			t.Fatalf("a finalizer of Janus is left on %s", obj.GetName())
		}
	}
	controller := metav1.GetControllerOf(obj)
	if ours := controller != nil && controller.UID == txn.UID; ours && !kept && obj.GetDeletionTimestamp() == nil {
		t.Fatalf("the before-image %s is left", obj.GetName())
	}
}

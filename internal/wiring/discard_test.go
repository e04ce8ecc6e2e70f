package wiring

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/snapshot"
	"janus.io/janus/test/testcluster"
)

// The process that has sent it is gone, so nobody knows of it: it has to be looked for by its name. The status names
// none either where all changes were skipped after some had been saved.
func TestALateBeforeImageOfATransactionWhoseStatusNamesNoneIsRemoved(t *testing.T) {
	kube, err := kubernetes.NewForConfig(testcluster.Shared(t).Config())
	require.NoError(t, err)
	for what, ref := range map[string]*api.RollbackRef{"no reference": nil, "a reference to none": {Name: "deploy-rollback"}} {
		t.Run(what, func(t *testing.T) {
			p, namespace := newPlanner(t)
			p.written, p.patience = newWritten(), newPatience(clock.RealClock{})
			txn := specOf(t, namespace, "changes: ["+patchMap+", "+patchMap+"]")
			txn.Status.RollbackRef = ref
			maps := kube.CoreV1().ConfigMaps(namespace)
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: "deploy-rollback-2", Labels: snapshot.Labels(txn.Name), Finalizers: []string{snapshot.Finalizer},
				Annotations:     map[string]string{api.TransactionKey: txn.Name, "janus.io/rollback-batch": "2-2-late"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: api.Kind.Kind, Name: txn.Name, UID: txn.UID}},
			}}, metav1.CreateOptions{})
			require.NoError(t, err)
			require.NoError(t, p.Discard(t.Context(), txn, false, engine.SearchOnce))
			_, err = maps.Get(t.Context(), "deploy-rollback-2", metav1.GetOptions{})
			assert.True(t, apierrors.IsNotFound(err), "%v", err)
		})
	}
}

package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// TestJanusWorksUnderItsPolicies runs what writes records and locks in every way: a commit
// that replaces an older one in the history, a rollback, an undo and a deletion of each kind.
func TestJanusWorksUnderItsPolicies(t *testing.T) {
	s := newScene(t)
	s.run()
	s.Apply(before)
	txn := s.Run("first", release)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	txn = s.Run("undo", `{undoOf: {name: first}, revisionHistoryLimit: 1}`)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	s.gone(revisions, "janus-revision-1")
	txn = s.Run("broken", `{changes: [
	  {target: {apiVersion: v1, kind: ConfigMap, name: config}, type: Patch, content: {data: {version: "3"}}},
	  {target: {apiVersion: v1, kind: Secret, name: key}, type: Patch, content: {stringData: {key: newer}},
	   readyWhen: {expression: "has(object.data.never)", timeout: 1s}}]}`)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "1", s.Value("ConfigMap/config", "data", "version"))
	for _, name := range []string{"first", "undo", "broken"} {
		s.NothingLeft(name)
	}
	s.Delete("undo", metav1.DeletePropagationBackground)
	s.gone(revisions, "janus-revision-2")
	s.Delete("broken", metav1.DeletePropagationForeground)
	for _, gvr := range []schema.GroupVersionResource{configMaps, secrets} {
		s.gone(gvr, "undo-rollback")
		s.gone(gvr, "broken-rollback")
	}
}

// TestADeletedNamespaceIsEmptied is about a namespace with a Transaction half-way, its
// before-images and its lock.
func TestADeletedNamespaceIsEmptied(t *testing.T) {
	s := newScene(t)
	s.run()
	s.Apply(before)
	txn := s.Run("done", release)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	s.Submit("running", held)
	s.lockOf("running")
	require.NoError(t, s.in.client.CoreV1().Namespaces().Delete(t.Context(), s.Namespace, metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := s.in.client.CoreV1().Namespaces().Get(t.Context(), s.Namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, settle, poll, "the namespace goes")
}

// TestWhatIsLeftIsCollected is about records and locks whose Transaction goes while no
// janusd runs: the garbage collector deletes them, or takes their owner off.
func TestWhatIsLeftIsCollected(t *testing.T) {
	for _, propagation := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		t.Run(string(propagation), func(t *testing.T) {
			s := newScene(t)
			txn := transaction("default")
			txn.SetGenerateName("")
			txn.SetName("left")
			owner, err := s.admin.Resource(api.Resource).Namespace(s.Namespace).Create(t.Context(), txn, metav1.CreateOptions{})
			require.NoError(t, err)
			reference := metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}
			janus := s.in.as(t, janusd.User)
			image, lease := record("ConfigMap", "left-rollback"), lock("left", s.Namespace+"/left/"+string(owner.GetUID()))
			image.SetOwnerReferences([]metav1.OwnerReference{reference})
			lease.SetOwnerReferences([]metav1.OwnerReference{reference})
			_, err = janus.Resource(configMaps).Namespace(s.Namespace).Create(t.Context(), image, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = janus.Resource(leases).Namespace(s.Namespace).Create(t.Context(), lease, metav1.CreateOptions{})
			require.NoError(t, err)

			s.Delete("left", propagation)
			s.Gone("left")
			if propagation != metav1.DeletePropagationOrphan {
				s.gone(configMaps, "left-rollback")
				s.gone(leases, "left")
				return
			}
			kept, err := s.in.dynamic.Resource(configMaps).Namespace(s.Namespace).Get(t.Context(), "left-rollback", metav1.GetOptions{})
			require.NoError(t, err)
			assert.Empty(t, kept.GetOwnerReferences(), "the garbage collector has taken the owner off")
		})
	}
}

// gone waits until an object does not exist any more.
func (s *scene) gone(gvr schema.GroupVersionResource, name string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		_, err := s.in.dynamic.Resource(gvr).Namespace(s.Namespace).Get(s.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, settle, poll, "%s %s goes", gvr.Resource, name)
}

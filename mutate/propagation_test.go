package mutate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// grownDeployment makes a Deployment at its second revision, with its Pods.
func (e *env) grownDeployment() *unstructured.Unstructured {
	e.t.Helper()
	obj := e.create(deployment)
	e.within("it has Pods", func() bool { return len(e.uids("pods")) == 5 })
	e.merge("kubectl", obj, `{"spec":{"template":{"metadata":{"labels":{"generation":"two"}}}}}`)
	e.within("it is at its second revision", func() bool {
		return e.live(obj).GetAnnotations()["deployment.kubernetes.io/revision"] == "2" && len(e.owned(obj)) == 2
	})
	return obj
}

// uids returns those of the ReplicaSets or Pods of the namespace.
func (e *env) uids(resource string) map[types.UID]bool {
	e.t.Helper()
	out := map[types.UID]bool{}
	if resource == "pods" {
		list, err := e.Kube.CoreV1().Pods(e.namespace).List(e.t.Context(), metav1.ListOptions{})
		require.NoError(e.t, err)
		for _, pod := range list.Items {
			out[pod.UID] = true
		}
		return out
	}
	list, err := e.Kube.AppsV1().ReplicaSets(e.namespace).List(e.t.Context(), metav1.ListOptions{})
	require.NoError(e.t, err)
	for _, set := range list.Items {
		out[set.UID] = true
	}
	return out
}

// owned returns the ReplicaSets that a Deployment controls.
func (e *env) owned(obj *unstructured.Unstructured) []string {
	e.t.Helper()
	list, err := e.Kube.AppsV1().ReplicaSets(e.namespace).List(e.t.Context(), metav1.ListOptions{})
	require.NoError(e.t, err)
	var out []string
	for _, set := range list.Items {
		if controller := metav1.GetControllerOf(&set); controller != nil && controller.UID == e.live(obj).GetUID() {
			out = append(out, set.Name)
		}
	}
	return out
}

func TestK10OrphanedReplicaSetsAreAdoptedAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.grownDeployment()
	config := e.create(settings)
	e.merge("somebody", config, `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"`+string(obj.GetUID())+`"}]}}`)
	e.settle()
	sets, pods := e.uids("replicasets"), e.uids("pods")

	i := e.plan(0, api.Delete, deployment)
	i.change.Options.Propagation = metav1.DeletePropagationOrphan
	require.NoError(t, i.tryPrepare())
	i.landed()
	assert.Nil(t, i.now())
	i.undone()
	e.within("its ReplicaSets are its own again", func() bool { return len(e.owned(obj)) == 2 })
	assert.Equal(t, sets, e.uids("replicasets"))
	assert.Equal(t, pods, e.uids("pods"))
	assert.Equal(t, "2", i.now().GetAnnotations()["deployment.kubernetes.io/revision"])
	i.restored()
	// Other children lose their reference for good.
	assert.Empty(t, e.live(config).GetOwnerReferences())
}

// settle waits until the Deployment rests.
func (e *env) settle() {
	e.t.Helper()
	e.within("the Pods rest", func() bool {
		before := e.uids("pods")
		list, err := e.Kube.AppsV1().ReplicaSets(e.namespace).List(e.t.Context(), metav1.ListOptions{})
		require.NoError(e.t, err)
		for _, set := range list.Items {
			if set.Status.Replicas != *set.Spec.Replicas || set.Status.ObservedGeneration != set.Generation {
				return false
			}
		}
		return len(before) == len(e.uids("pods"))
	})
}

func TestK10ChildrenGoInTheBackgroundAndInTheForeground(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{"", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			obj := e.grownDeployment()
			old := e.uids("replicasets")
			i := e.plan(0, api.Delete, deployment)
			i.change.Options.Propagation = policy
			require.NoError(t, i.tryPrepare())
			if policy == metav1.DeletePropagationForeground {
				fails(t, patiently(i.do), errclass.Retryable, errclass.Terminating, "foregroundDeletion")
				i.takesEffect()
				assert.Empty(t, e.uids("replicasets"), "they go first")
			} else {
				i.landed()
			}
			e.within("its ReplicaSets are gone", func() bool { return len(e.uids("replicasets")) == 0 })
			i.undone()
			e.within("it has a new ReplicaSet", func() bool { return len(e.owned(obj)) == 1 })
			for uid := range e.uids("replicasets") {
				assert.False(t, old[uid])
			}
			i.restored()
		})
	}
}

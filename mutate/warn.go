package mutate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/mutate/kinds"
)

// cautions are what is hard to roll back about the deletion of an object.
func (c Change) cautions(before *unstructured.Unstructured) []string {
	var out []string
	say := func(so bool, text string) {
		if so {
			out = append(out, c.warn(text)...)
		}
	}
	finalizers := before.GetFinalizers()
	say(len(finalizers) > 0, "its deletion waits for the finalizers "+strings.Join(finalizers, ", ")+", and cannot be called back meanwhile")
	say(len(before.GetOwnerReferences()) > 0, "it is owned by "+ownersIn(before)+": if an owner is gone by then, a rollback re-creates it without that reference")
	kind := c.Ref.GVK.GroupKind()
	orphans := c.Options.propagation() == metav1.DeletePropagationOrphan
	adopts, _ := kinds.Adopts(kind)
	say(kinds.Of(kind).Workload && !orphans, "its Pods go with it, and a rollback starts new ones; propagationPolicy: Orphan would keep them")
	say(len(adopts) == 0 && orphans, "what it owns loses its owner reference, and a rollback does not put that back")
	say(kind == kinds.Pod && metav1.GetControllerOf(before) == nil, "no controller owns it: a rollback starts a new Pod, from the beginning")
	say(isLoadBalancer(kind, before), "its address at the load balancer may be another after a rollback")
	say(isTokenSecret(kind, before), "the control plane deletes it after a rollback if its ServiceAccount was re-created meanwhile")
	say(c.binds(before), "it gives the Transaction's own ServiceAccount its rights: what comes after it, and a rollback, may lack them")
	say(!known(c.Options.Tail), "other changes come after this deletion: last is best, because it is the hardest to roll back")
	return out
}

func ownersIn(obj *unstructured.Unstructured) string {
	var out []string
	for _, owner := range obj.GetOwnerReferences() {
		out = append(out, owner.Kind+" "+owner.Name)
	}
	return strings.Join(out, ", ")
}

func isLoadBalancer(kind schema.GroupKind, obj *unstructured.Unstructured) bool {
	of, _, _ := unstructured.NestedString(obj.Object, "spec", "type")
	return kind == schema.GroupKind{Kind: "Service"} && of == string(corev1.ServiceTypeLoadBalancer)
}

func isTokenSecret(kind schema.GroupKind, obj *unstructured.Unstructured) bool {
	of, _, _ := unstructured.NestedString(obj.Object, "type")
	return kind == schema.GroupKind{Kind: "Secret"} && of == string(corev1.SecretTypeServiceAccountToken)
}

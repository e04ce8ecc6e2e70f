package mutate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// admitExisting refuses a target that is not there, or on its way out.
func (c Change) admitExisting(before *unstructured.Unstructured, op string) error {
	if before == nil {
		if c.Ref.Deferred {
			return c.fail(errclass.Terminal, errclass.NotFound, op, "it does not exist, and what its kind or namespace is made by comes earlier in this Transaction").
				WithHint("make it with a Create")
		}
		return c.fail(errclass.Terminal, errclass.NotFound, op, "it does not exist").WithHint("make it with a Create")
	}
	return c.admitAlive(before, op)
}

func (c Change) admitAlive(before *unstructured.Unstructured, op string) error {
	if before.GetDeletionTimestamp() == nil {
		return nil
	}
	return c.fail(errclass.Terminal, errclass.Terminating, op, "it is being deleted%s", waitsFor(before)).
		WithHint("wait until it is gone, then create the Transaction again")
}

func waitsFor(obj *unstructured.Unstructured) string {
	f := obj.GetFinalizers()
	if obj.GetKind() == target.NamespaceKind.Kind && len(f) == 0 {
		if why := undiscovered(obj); why != "" {
			return " and waits until what is in it can be told: " + errclass.Printable(why)
		}
		return " and waits until what is in it is gone"
	}
	if len(f) > 0 {
		return errclass.Printable(" and waits for its finalizers " + strings.Join(f, ", "))
	}
	return ""
}

// undiscovered says that what is in a Namespace cannot be told, because an API does not answer that
// another server has; empty if it can.
func undiscovered(namespace *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(namespace.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == string(corev1.NamespaceDeletionDiscoveryFailure) && condition["status"] == string(corev1.ConditionTrue) {
			message, _ := condition["message"].(string)
			return message + "; see `kubectl get apiservices`"
		}
	}
	return ""
}

package mutate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate/kinds"
)

// That something is missing when an object is created says nothing of that object: it is not
// tried again as if the object had changed.
func TestWhatACreationLacksIsNamedAndNotTakenForAChangeOfTheTarget(t *testing.T) {
	binding := &unstructured.Unstructured{Object: map[string]any{"roleRef": map[string]any{"kind": "Role", "name": "reader"}}}
	of := func(group, kind string) Change {
		return Change{Ref: target.Ref{GVK: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Namespace: "shop", Name: "x"}}
	}
	notFound := func(group, resource string) error {
		return apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: resource}, "reader")
	}
	for _, c := range []struct {
		what   string
		change Change
		err    error
		reason string
		says   string
	}{
		{"the role of a binding", of(kinds.RBACGroup, "RoleBinding"), notFound(kinds.RBACGroup, "roles"), errclass.NotFound, "Role reader, which it refers to, does not exist"},
		{"anything else", of("", "ConfigMap"), notFound("example.com", "things"), errclass.NotFound, `something that it refers to does not exist: create ConfigMap shop/x: things.example.com "reader" not found`},
		{"the namespace", of("", "ConfigMap"), notFound("", "namespaces"), errclass.NamespaceNotFound, "namespace shop does not exist"},
	} {
		t.Run(c.what, func(t *testing.T) {
			err := c.change.lacks(c.err, binding)
			assert.Equal(t, errclass.Terminal, errclass.ClassOf(err))
			assert.Equal(t, c.reason, errclass.ReasonOf(err))
			assert.Contains(t, err.Error(), c.says)
			assert.False(t, stale(err))
			assert.True(t, stale(c.err), "of a write to an object that was there it says that it is gone")
		})
	}
}

func TestWhoeverHasWrittenAStandInIsAskedOfItsManagers(t *testing.T) {
	written := func(kind, name string, managers ...string) (Change, *unstructured.Unstructured) {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		obj.SetName(name)
		var entries []metav1.ManagedFieldsEntry
		for _, m := range managers {
			entries = append(entries, metav1.ManagedFieldsEntry{Manager: m, Operation: metav1.ManagedFieldsOperationUpdate})
		}
		obj.SetManagedFields(entries)
		return Change{Ref: target.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: kind}, Name: name}}, obj
	}
	for _, c := range []struct {
		what, kind, name string
		managers         []string
		want             bool
	}{
		{"a controller", "Endpoints", "db", []string{"kube-controller-manager"}, true},
		{"two components", "Pod", "web-0", []string{"kube-controller-manager", "kubelet"}, true},
		{"a person", "Endpoints", "db", []string{"kubectl"}, false},
		{"a controller, and then a person", "Endpoints", "db", []string{"kube-controller-manager", "kubectl"}, false},
		{"nobody that is known", "Endpoints", "db", nil, false},
		{"nobody, of what every namespace is given", "ServiceAccount", "default", nil, true},
		{"nobody, of another of that kind", "ServiceAccount", "deployer", nil, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			change, live := written(c.kind, c.name, c.managers...)
			assert.Equal(t, c.want, change.standIn(live))
		})
	}
}

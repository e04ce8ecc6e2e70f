package mutate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// lackError says that a creation was refused because something else does not exist. It
// says nothing of the target.
type lackError struct{ error }

func (e *lackError) Unwrap() error { return e.error }

// lacks explains a NotFound that a creation has met: the object need not exist, so what it
// refers to does not, or its namespace.
func (c Change) lacks(err error, wanted *unstructured.Unstructured) error {
	if errclass.Is(err, errclass.NamespaceNotFound) {
		return &lackError{c.fail(errclass.Terminal, errclass.NamespaceNotFound, "re-create", "namespace %s does not exist", c.Ref.Namespace).
			WithHint("create the namespace")}
	}
	named := "something that it refers to"
	if role := roleOf(c.Ref.GVK.GroupKind(), wanted); role != "" {
		named = role + ", which it refers to,"
	}
	return &lackError{c.fail(errclass.Terminal, errclass.NotFound, "re-create", "%s does not exist: %w", named, c.wrap(err, "create")).
		WithHint("create what is missing")}
}

// roleOf names the role of a binding; empty for another kind. Who may not bind roles at
// will must have every right that is in one, so it is looked for.
func roleOf(kind schema.GroupKind, binding *unstructured.Unstructured) string {
	if kind.Group != kinds.RBACGroup {
		return ""
	}
	of, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	if of == "" || name == "" {
		return ""
	}
	return errclass.Printable(fmt.Sprintf("%s %s", of, name))
}

package processes

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/mutate"
)

// The kinds of targets.
var (
	configMap  = kind{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps"}
	secret     = kind{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets"}
	deployment = kind{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments"}
)

type kind struct {
	schema.GroupVersionKind
	plural string
}

func (k kind) resource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.plural)
}

// target is an object that one Transaction alone changes, once or more often.
type target struct {
	kind
	name string
	// initial is what is there before; nil if nothing is.
	initial *unstructured.Unstructured
	// changes are the changes of it, in their order, and effects what each makes of
	// an object as project gives it.
	changes []map[string]any
	effects []func(map[string]any) map[string]any

	// before is the object as it was made, and states what it is then and after each
	// of the changes.
	before *unstructured.Unstructured
	states []string
}

func (t *target) ref() string { return t.Kind + "/" + t.name }

// add adds a change and what it makes of the object.
func (t *target) add(change string, content map[string]any, effect func(map[string]any) map[string]any) *target {
	entry := map[string]any{
		"type":   change,
		"target": map[string]any{"apiVersion": t.GroupVersion().String(), "kind": t.Kind, "name": t.name},
	}
	if content != nil {
		entry["content"] = content
	}
	t.changes = append(t.changes, entry)
	t.effects = append(t.effects, effect)
	return t
}

// begin notes the object as it was made, and computes its states.
func (t *target) begin(made *unstructured.Unstructured) {
	t.before = made
	state := project(made)
	t.states = []string{text(state)}
	for _, effect := range t.effects {
		state = effect(state)
		t.states = append(t.states, text(state))
	}
}

// What the foreign writer writes is known by its name.
const (
	foreignAnnotation = "foreign.example.com/"
	foreignKey        = "foreign-"
)

// project returns an object without what the server sets, what the foreign writer has
// written, and what the Deployment controller and Janus note on it; nil for none.
func project(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	out := fieldmerge.Strip(obj).Object
	without(out, func(key string) bool {
		return strings.HasPrefix(key, foreignAnnotation) || key == mutate.MarkerAnnotation || key == api.TransactionKey ||
			key == "deployment.kubernetes.io/revision"
	}, "metadata", "annotations")
	without(out, func(key string) bool { return key == api.TransactionKey }, "metadata", "labels")
	without(out, func(key string) bool { return strings.HasPrefix(key, foreignKey) }, "data")
	return out
}

// without removes keys of a map, and the map if nothing is left of it.
func without(obj map[string]any, unwanted func(key string) bool, path ...string) {
	fields, found, _ := unstructured.NestedMap(obj, path...)
	if !found {
		return
	}
	maps.DeleteFunc(fields, func(key string, _ any) bool { return unwanted(key) })
	if len(fields) == 0 {
		unstructured.RemoveNestedField(obj, path...)
		return
	}
	_ = unstructured.SetNestedMap(obj, fields, path...)
}

// text is the form in which states are compared; empty for no object.
func text(projected map[string]any) string {
	if projected == nil {
		return ""
	}
	content, err := json.Marshal(projected) // sorts the keys
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// setting returns the effect of setting a field.
func setting(value any, path ...string) func(map[string]any) map[string]any {
	return func(obj map[string]any) map[string]any {
		out := (&unstructured.Unstructured{Object: obj}).DeepCopy().Object
		_ = unstructured.SetNestedField(out, value, path...)
		return out
	}
}

// replacing returns the effect of an object that takes the place of what was there.
func replacing(k kind, namespace, name string, fields map[string]any) func(map[string]any) map[string]any {
	return func(map[string]any) map[string]any {
		out := map[string]any{
			"apiVersion": k.GroupVersion().String(), "kind": k.Kind,
			"metadata": map[string]any{"name": name, "namespace": namespace},
		}
		maps.Copy(out, fields)
		return out
	}
}

func removing(map[string]any) map[string]any { return nil }

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// object makes an object.
func object(k kind, name string, fields map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: maps.Clone(fields)}
	obj.SetGroupVersionKind(k.GroupVersionKind)
	obj.SetName(name)
	return obj
}

package wiring

import (
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// refOf returns the target of an item. What the RESTMapper said when the
// Transaction was validated is on record, so nothing is looked up again.
func refOf(item api.Item) (target.Ref, error) {
	gv, err := schema.ParseGroupVersion(item.Target.APIVersion)
	if err != nil {
		return target.Ref{}, fmt.Errorf("item %s: %w", item.Name, err)
	}
	return target.Ref{
		GVK: gv.WithKind(item.Target.Kind), GVR: gv.WithResource(item.Resource),
		Namespace: item.Target.Namespace, Name: item.Target.Name, Deferred: item.Deferred,
	}, nil
}

// managerOf is the field manager of an item: one for each item, since two applies
// by one manager to one object drop each other's fields.
func managerOf(uid apitypes.UID, item int) string { return familyOf(uid) + strconv.Itoa(item) }

// markerOf is what an object carries that an item has created.
func markerOf(uid apitypes.UID, item int) string { return string(uid) + "." + strconv.Itoa(item) }

// familyOf is what the field managers of all items of a Transaction begin with.
func familyOf(uid apitypes.UID) string {
	short := string(uid)
	if len(short) > 8 {
		short = short[:8]
	}
	return "janus-" + short + "-"
}

var errNotAnObject = errors.New("content is not an object, or has a number that is out of range")

// contentOf decodes the content of a change; integers stay integers.
func contentOf(change api.Change) (map[string]any, error) {
	if change.Content == nil || len(change.Content.Raw) == 0 {
		return nil, nil
	}
	var content map[string]any
	if err := utiljson.Unmarshal(change.Content.Raw, &content); err != nil {
		return nil, errNotAnObject // The cause speaks of Go, and may quote the content.
	}
	return content, nil
}

// contradiction says where content names another object than the target.
func contradiction(content map[string]any, t api.Target) error {
	refuse := func(format string, args ...any) error {
		return errclass.New(errclass.Terminal, errclass.Invalid, "validate", t.String(), format, args...).
			WithHint("make them agree, or leave it out of the content")
	}
	if _, ok := content["metadata"].(map[string]any); !ok && content["metadata"] != nil {
		return refuse("content.metadata is not an object")
	}
	for _, f := range []struct {
		name string
		got  any
		want string
	}{
		{"apiVersion", valueAt(content, "apiVersion"), t.APIVersion},
		{"kind", valueAt(content, "kind"), t.Kind},
		{"metadata.name", valueAt(content, "metadata", "name"), t.Name},
		{"metadata.namespace", valueAt(content, "metadata", "namespace"), t.Namespace},
	} {
		text, ok := f.got.(string)
		switch {
		case !ok && f.got != nil:
			return refuse("content.%s is not text", f.name)
		case text != "" && text != f.want:
			return refuse("content.%s is %q but the target's is %q", f.name, text, f.want)
		}
	}
	for _, name := range []string{"generateName", "uid", "resourceVersion", "managedFields"} {
		meta, _ := content["metadata"].(map[string]any)
		if _, ok := meta[name]; ok {
			return errclass.New(errclass.Terminal, errclass.Invalid, "validate", t.String(),
				"content.metadata.%s cannot be set: Janus and the API server set it", name).WithHint("leave it out of the content")
		}
	}
	return nil
}

func valueAt(object map[string]any, path ...string) any {
	for _, name := range path[:len(path)-1] {
		object, _ = object[name].(map[string]any)
	}
	return object[path[len(path)-1]]
}

package fieldmerge

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Reown returns a copy of obj whose owner references name the uids that to returns for
// the old ones; a reference for which it returns none is left out. The entries of
// managedFields follow: anyone who owned a reference owns the new one, nobody owns one
// that was left out, and an entry with nothing left is dropped.
func Reown(obj *unstructured.Unstructured, to func(old types.UID) types.UID) (*unstructured.Unstructured, error) {
	out := obj.DeepCopy()
	references, _, _ := unstructured.NestedSlice(out.Object, "metadata", "ownerReferences")
	var kept []any
	for _, r := range references {
		reference, ok := r.(map[string]any)
		if !ok {
			continue
		}
		old, _ := reference["uid"].(string)
		if uid := to(types.UID(old)); uid != "" {
			reference["uid"] = string(uid)
			kept = append(kept, reference)
		}
	}
	meta, _ := out.Object["metadata"].(map[string]any)
	delete(meta, "ownerReferences")
	if len(kept) > 0 {
		meta["ownerReferences"] = kept
	}
	list, err := entriesOf(obj)
	if err != nil {
		return nil, err
	}
	var moved []metav1.ManagedFieldsEntry
	for _, e := range list {
		set := reowned(e.set, to, len(kept) > 0)
		if set.Empty() {
			continue
		}
		raw, err := set.ToJSON()
		if err != nil {
			return nil, fmt.Errorf("managedFields of %s: %w", e.Manager, err)
		}
		e.FieldsV1 = &metav1.FieldsV1{}
		e.FieldsV1.SetRawBytes(raw)
		moved = append(moved, e.ManagedFieldsEntry)
	}
	out.SetManagedFields(moved)
	return out, nil
}

// reowned is a set with the paths of owner references moved. any tells whether a
// reference is left at all.
func reowned(set *fieldpath.Set, to func(types.UID) types.UID, any bool) *fieldpath.Set {
	out := fieldpath.NewSet()
	set.Iterate(func(p fieldpath.Path) {
		path := p.Copy()
		if isOwnerReferences(path) {
			if len(path) > 2 {
				uid := to(uidIn(path[2]))
				if uid == "" {
					return
				}
				path[2] = fieldpath.PathElement{Key: fieldpath.KeyByFields("uid", string(uid))}
			} else if !any {
				return
			}
		}
		out.Insert(path)
	})
	return out
}

func isOwnerReferences(path fieldpath.Path) bool {
	return len(path) >= 2 && path[0].FieldName != nil && *path[0].FieldName == "metadata" &&
		path[1].FieldName != nil && *path[1].FieldName == "ownerReferences"
}

// uidIn is the uid in the key of an owner reference.
func uidIn(element fieldpath.PathElement) types.UID {
	if element.Key == nil {
		return ""
	}
	for _, key := range *element.Key {
		if key.Name == "uid" && key.Value.IsString() {
			return types.UID(key.Value.AsString())
		}
	}
	return ""
}

package fieldmerge

import (
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Foreign lists the fields of an object that managers own whom known does not know. The
// status does not count, and neither do fields that controllers are known to write,
// whatever they call themselves.
func Foreign(obj *unstructured.Unstructured, known func(manager string) bool) ([]FieldConflict, error) {
	list, err := entriesOf(obj)
	if err != nil {
		return nil, err
	}
	values := lookupIn(obj.Object)
	byPath := map[string]FieldConflict{}
	for _, e := range list {
		if known(e.Manager) || e.Subresource == "status" {
			continue
		}
		e.set.Leaves().Iterate(func(p fieldpath.Path) {
			if isStatus(p) || knownAs(obj.GroupVersionKind().GroupKind(), p).byControllers() {
				return
			}
			found := byPath[p.String()]
			found.Path, found.path = p.String(), p.Copy()
			found.Managers = append(found.Managers, e.Manager)
			found.Now, _ = values.at(p)
			byPath[p.String()] = found
		})
	}
	out := make([]FieldConflict, 0, len(byPath))
	for _, found := range byPath {
		out = append(out, found)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out, nil
}

// NewOwners lists the owner references of live that made, the object as a change
// made it, does not have and that the managers of the change do not own, no matter who has
// added them. made may be nil: then ownership alone tells.
func NewOwners(live, made *unstructured.Unstructured, ours func(manager string) bool) []FieldConflict {
	known := map[types.UID]bool{}
	if made != nil {
		for _, owner := range made.GetOwnerReferences() {
			known[owner.UID] = true
		}
	}
	list, err := entriesOf(live)
	if err != nil {
		return nil
	}
	var out []FieldConflict
	now := whenAsked(live)
	for _, owner := range live.GetOwnerReferences() {
		path := ownerReference(owner.UID)
		if known[owner.UID] || list.ownedBy(ours, path) {
			continue
		}
		value, _ := valueAt(live.Object, path)
		out = append(out, FieldConflict{Path: path.String(), Managers: now().below(path, ours), Now: value, path: path})
	}
	return out
}

func (l entries) ownedBy(managers func(string) bool, path fieldpath.Path) bool {
	for _, e := range l {
		if managers(e.Manager) && holdsBelow(e.set, path) {
			return true
		}
	}
	return false
}

func ownerReference(uid types.UID) fieldpath.Path {
	meta, references := "metadata", "ownerReferences"
	return fieldpath.Path{{FieldName: &meta}, {FieldName: &references}, {Key: fieldpath.KeyByFields("uid", string(uid))}}
}

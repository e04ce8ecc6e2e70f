package mutate

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	"janus.io/janus/internal/errclass"
)

// Dependant is an object that others own.
type Dependant struct {
	GVR schema.GroupVersionResource
	*metav1.PartialObjectMetadata
}

func (d Dependant) String() string {
	name := d.Name
	if d.Namespace != "" {
		name = d.Namespace + "/" + name
	}
	return errclass.Printable(d.Kind + " " + name)
}

// Dependants are objects that have owners, among them all of those wanted that the target
// owns, directly or through others.
type Dependants struct {
	All []Dependant
	// Unseen are the resources that could not be looked at.
	Unseen []string
}

// Wanted says which dependants are looked for.
type Wanted int

const (
	// Everything is what the target may have adopted or made.
	Everything Wanted = iota
	// Irreplaceable is what cannot be made again: claims, volumes, CustomResourceDefinitions,
	// Namespaces, and what stands for something outside.
	Irreplaceable
)

// tree is what an object owns.
type tree struct {
	// adopted are those that are older than the object, and would go with it.
	adopted []Dependant
	// goes are those that are not, and go with it; the nearest come first.
	goes []Dependant
	// owners are the uids of the object and of what goes with it.
	owners map[types.UID]bool
}

// treeOf sorts what the object owns. What is adopted is not looked below: it stays, and so
// does what it owns.
func treeOf(root metav1.Object, all []Dependant) tree {
	t := tree{owners: map[types.UID]bool{root.GetUID(): true}}
	t.goes = collected(root, t.owners, all, func(d Dependant, owner types.UID) bool {
		if !adoptedBy(root, d, owner) {
			return true
		}
		if d.DeletionTimestamp == nil {
			t.adopted = append(t.adopted, d)
		}
		return false
	})
	return t
}

// allBelow are all objects that would go with one, however old.
func allBelow(root metav1.Object, all []Dependant) []Dependant {
	return collected(root, map[types.UID]bool{root.GetUID(): true}, all, func(Dependant, types.UID) bool { return true })
}

// collected are the objects that the garbage collector deletes once the root is gone, where may
// says so; owners come before what they own. It adds them to those that go. What has another
// owner, which stays, is kept by that one. Only an owner that is older than the root is taken to
// stay: of several that are deleted side by side, each would be kept by the others, and so the
// oldest counts for all.
func collected(root metav1.Object, goes map[types.UID]bool, all []Dependant, may func(d Dependant, owner types.UID) bool) []Dependant {
	stays, kept := map[types.UID]Dependant{}, map[types.UID]bool{}
	for _, d := range all {
		if d.DeletionTimestamp == nil && olderThan(d, root) {
			stays[d.UID] = d
		}
	}
	var out []Dependant
	for grew := true; grew; {
		grew = false
		for _, d := range all {
			owner, ok := goingOwner(d, goes, stays)
			switch {
			case !ok || goes[d.UID] || kept[d.UID]:
			case may(d, owner):
				goes[d.UID], grew = true, true
				out = append(out, d)
			default:
				kept[d.UID] = true
			}
		}
	}
	return out
}

// goingOwner returns the first owner of an object that goes, unless another one stays.
func goingOwner(d Dependant, goes map[types.UID]bool, stays map[types.UID]Dependant) (first types.UID, ok bool) {
	for _, owner := range d.OwnerReferences {
		other, there := stays[owner.UID]
		switch {
		case goes[owner.UID]:
			if !ok {
				first, ok = owner.UID, true
			}
		case there && other.isOwner(owner, d.Namespace):
			return "", false
		}
	}
	return first, ok
}

// isOwner reports whether the garbage collector finds the object by a reference to an owner, in
// an object of a namespace. It takes one that is wrong for one to what does not exist.
func (d Dependant) isOwner(ref metav1.OwnerReference, namespace string) bool {
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group
	return ref.Name == d.Name && ref.Kind == d.Kind && group == d.GVR.Group && (d.Namespace == "" || d.Namespace == namespace)
}

// between are those that go and own, directly or through others, what is adopted: from the
// object down.
func (t tree) between() []Dependant {
	need := map[types.UID]bool{}
	for _, d := range t.adopted {
		for _, owner := range d.OwnerReferences {
			need[owner.UID] = true
		}
	}
	var out []Dependant
	for _, d := range slices.Backward(t.goes) {
		if !need[d.UID] {
			continue
		}
		out = append(out, d)
		for _, owner := range d.OwnerReferences {
			need[owner.UID] = true
		}
	}
	slices.Reverse(out)
	return out
}

// adoptedBy reports whether something was there before the object below which it is. The
// API server counts seconds: of the same one, it was if another client made it, and its
// owner came later.
func adoptedBy(root metav1.Object, d Dependant, owner types.UID) bool {
	if olderThan(root, d) {
		return false
	}
	return olderThan(d, root) || ownedLater(d, owner)
}

var (
	metadataPath   = fieldpath.MakePathOrDie("metadata")
	volumeNamePath = fieldpath.MakePathOrDie("spec", "volumeName")
)

// ownedLater reports whether who wrote the reference to an owner has written nothing else
// of the object, and another client has.
func ownedLater(d Dependant, owner types.UID) bool {
	reference := fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(owner)))
	later, others := false, false
	for _, entry := range d.ManagedFields {
		var set fieldpath.Set
		if entry.FieldsV1 == nil || entry.Subresource != "" || set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
			continue
		}
		wrote, beside := false, false
		set.Iterate(func(path fieldpath.Path) {
			wrote = wrote || hasPrefix(path, reference)
			beside = beside || !hasPrefix(path, metadataPath) && !path.Equals(volumeNamePath)
		})
		switch {
		case wrote && beside:
			return false
		case wrote:
			later = true
		case beside:
			others = true
		}
	}
	return later && others
}

func hasPrefix(path, prefix fieldpath.Path) bool {
	return len(path) >= len(prefix) && path[:len(prefix)].Equals(prefix)
}

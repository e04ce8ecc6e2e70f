package fieldmerge

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// FieldConflict is a field that a change wrote and that another client has written
// since, so that it cannot be given its old value back.
type FieldConflict struct {
	// Path is the field, such as .spec.replicas.
	Path string
	// Managers are those that own the field now, or something below it.
	Managers []string
	// Subresource is the one through which all of them own it; empty for the object
	// itself.
	Subresource string
	// Now is its value, and Before the one it had: nil when there is none.
	Now, Before any

	path fieldpath.Path
}

// Restoration is the answer to: what should the live object be, so that a change
// is rolled back and everything that others wrote since is kept?
type Restoration struct {
	// Desired is live with the fields of the change as they were before it.
	Desired *unstructured.Unstructured
	// Conflicts are the fields that others have written since. They keep their live
	// value, unless they were to be restored by force.
	Conflicts []FieldConflict
	// Reclaimed are the fields that keep their live value because anyone who owned
	// them before the change owns them again.
	Reclaimed []FieldConflict
}

// Restore undoes the step from before to after on top of live.
//
// A field that the change did not alter does not count here. One that it
// did alter gets its old value if it still has the new one and nobody else has
// claimed it since; if it has its old value already there is nothing to do;
// anything else is a conflict, unless it has been reclaimed. Objects and keyed
// lists are merged in parts, what is atomic as a whole. What controllers are
// known to write is never a conflict.
func (i Images) Restore() Restoration {
	types, whole := root(i.Type)
	m := merger{Images: i, types: types, claimed: i.claimed(), owned: ownedByAnybody(i.Before, i.Live), dropped: i.dropped(), now: whenAsked(i.Live), once: whenAsked(i.former())}
	merged := m.value(whole, i.content(i.Before), i.content(i.After), i.content(i.Live))
	desired := i.Live.DeepCopy()
	if object, ok := merged.(map[string]any); ok {
		overlay(desired.Object, i.content(i.Live), object)
	}
	return Restoration{Desired: desired, Conflicts: m.conflicts, Reclaimed: m.reclaimed}
}

// overlay puts the merged fields over live in place of those that were compared,
// and keeps everything else.
func overlay(live, kept, merged map[string]any) {
	for key := range kept {
		if _, ok := merged[key]; !ok && key != "metadata" {
			delete(live, key)
		}
	}
	for key, value := range merged {
		if key != "metadata" {
			live[key] = value
		}
	}
	liveMeta, _ := live["metadata"].(map[string]any)
	keptMeta, _ := kept["metadata"].(map[string]any)
	mergedMeta, _ := merged["metadata"].(map[string]any)
	for key := range keptMeta {
		if _, ok := mergedMeta[key]; !ok {
			delete(liveMeta, key)
		}
	}
	for key, value := range mergedMeta {
		liveMeta[key] = value
	}
}

type merger struct {
	Images
	types     typing
	claimed   *fieldpath.Set
	owned     *fieldpath.Set  // by anyone
	dropped   *fieldpath.Set  // by the API server
	now, once func() *holders // who owns the fields now, and who owned them before
	conflicts []FieldConflict
	reclaimed []FieldConflict
}

func (m *merger) value(n node, before, after, live any) any {
	switch {
	case reflect.DeepEqual(live, before):
		return live
	case reflect.DeepEqual(before, after) && !holdsBelow(m.dropped, n.path):
		return live
	case reflect.DeepEqual(before, after) && live == (absent{}):
		return before
	case reflect.DeepEqual(before, after):
		if parts, ok := m.types.split(n, before, after, live); ok {
			return m.parts(parts, before, live)
		}
		return live
	case m.asMade(n, after, live) && !holdsBelow(m.claimed, n.path):
		return before
	case m.isControllers(n.path):
		return live
	case before == (absent{}) && live != (absent{}) && isItem(n.path):
		// An item that the change added stays together.
		return m.dispute(n, before, live)
	case before != (absent{}) && after != (absent{}) && live == (absent{}) && isItem(n.path):
		return m.removed(n, before, after)
	}
	parts, ok := m.types.split(n, before, after, live)
	if !ok || m.ownedWhole(n, live) {
		return m.dispute(n, before, live)
	}
	return m.parts(parts, before, live)
}

// asMade reports whether a value is as the change made it. What the API server has chosen
// may be another than the dry run said, as long as nobody has chosen it since; so may a label
// or an annotation that admission stamps on every write.
func (m *merger) asMade(n node, after, live any) bool {
	if reflect.DeepEqual(live, after) {
		return true
	}
	if knownAs(m.kind(), n.path) == allocated || isStamp(n.path) && after != (absent{}) && m.now().tracked {
		return live != (absent{}) && len(m.now().below(n.path, m.Ours)) == 0
	}
	parts, ok := m.types.split(n, after, live)
	if !ok || len(parts) == 0 || after == (absent{}) || live == (absent{}) || isList(live) && reordered(parts, 0, 1) {
		return false
	}
	for _, p := range parts {
		if !m.asMade(p.node, p.values[0], p.values[1]) {
			return false
		}
	}
	return true
}

// isItem reports whether a path ends in an item of a keyed list.
func isItem(path fieldpath.Path) bool { return len(path) > 0 && path[len(path)-1].Key != nil }

// removed decides about an item that the change altered and others have removed:
// what it had before cannot be put back without the item.
func (m *merger) removed(n node, before, after any) any {
	known := len(m.conflicts)
	m.missing(n, before, after)
	if m.Force && len(m.conflicts) > known {
		return before
	}
	return absent{}
}

// missing disputes every field of a removed item that the change altered, but for
// those that it added.
func (m *merger) missing(n node, before, after any) {
	if before == (absent{}) || reflect.DeepEqual(before, after) {
		return
	}
	parts, ok := m.types.split(n, before, after)
	if after == (absent{}) || !ok {
		m.dispute(n, before, absent{})
		return
	}
	for _, p := range parts {
		m.missing(p.node, p.values[0], p.values[1])
	}
}

// ownedWhole reports whether an object of which no schema is known has been
// claimed as one value.
func (m *merger) ownedWhole(n node, live any) bool {
	object, _ := live.(map[string]any)
	return m.types.deduced && m.claimed.Has(n.path) && len(object) > 0 && isLeaf(m.owned, n.path)
}

// parts puts an object or a list together again. One that the change added whole,
// or that others removed whole, is not there when there is nothing in it.
func (m *merger) parts(parts []child, before, live any) any {
	var there []child
	for _, p := range parts {
		merged := m.value(p.node, p.values[0], p.values[1], p.values[2])
		if merged != (absent{}) {
			p.values = append(p.values, merged)
			there = append(there, p)
		}
	}
	if len(there) == 0 && (before == (absent{}) || live == (absent{})) {
		return absent{}
	}
	if isList(before) || isList(live) {
		return inOrder(there)
	}
	out := map[string]any{}
	for _, c := range there {
		out[*c.path[len(c.path)-1].FieldName] = c.values[3]
	}
	return out
}

// dispute decides about a value that is neither as before nor untouched since. That nobody
// owns it proves nothing: anyone who writes a field in another form, by another version of the
// kind or by a field that is not shown, does not come to own it.
func (m *merger) dispute(n node, before, live any) any {
	ours := m.Ours
	if m.HandedOver {
		ours = nobodys // Those of a later Transaction have the same names.
	}
	owners, via := m.now().via(n.path, ours)
	found := FieldConflict{Path: n.path.String(), Managers: owners, Subresource: via, Now: orNil(live), Before: orNil(before), path: n.path.Copy()}
	byControllers := found.ByControllers() && live != (absent{})
	switch {
	case byControllers && isContainer(live):
		// A list or object that is one value, to which the control plane has added its own,
		// such as a taint to a Node. It will do so again.
		return before
	case len(owners) > 0 && live != (absent{}) && (!m.HandedOver || via == "scale") && m.ownedBefore(n.path):
		m.reclaimed = append(m.reclaimed, found)
		return live
	case byControllers:
		// It has written it because of the change, and will do so again.
		return before
	case m.Force:
		m.conflicts = append(m.conflicts, found)
		return before
	default:
		m.conflicts = append(m.conflicts, found)
		return live
	}
}

func orNil(v any) any {
	if v == (absent{}) {
		return nil
	}
	return v
}

// ownedBefore reports whether everybody but us who owns a field now owned it
// before the change. As long as nobody owns the replicas of a workload, the API
// server does not record who scales it: then anyone who does so now is taken for
// anyone who did before.
func (m *merger) ownedBefore(path fieldpath.Path) bool {
	previous, current := m.once(), m.now()
	if previous.err != nil || current.err != nil {
		return false
	}
	had := previous.allShown
	unowned := !entry{set: had}.holds(had, path)
	for _, e := range current.shown {
		switch {
		case m.Ours(e.Manager), !e.holds(current.allShown, path), previous.shown.find(e.owner).holds(had, path):
		case unowned && e.Subresource == "scale":
		default:
			return false
		}
	}
	return true
}

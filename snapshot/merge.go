package snapshot

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// FieldConflict is a field that a change wrote and that somebody else has written
// since, so that it cannot be given its old value back.
type FieldConflict struct {
	// Path is the field, such as .spec.replicas.
	Path string
	// Managers are those that own the field now, or something below it.
	Managers []string
}

func (c FieldConflict) String() string {
	if len(c.Managers) == 0 {
		return c.Path
	}
	return fmt.Sprintf("%s (now of %s)", c.Path, strings.Join(c.Managers, ", "))
}

// Restoration is the answer to: what should the live object be, so that a change
// is taken back and everything that others wrote since is kept?
type Restoration struct {
	// Desired is live with the fields of the change as they were before it.
	Desired *unstructured.Unstructured
	// Conflicts are the fields that keep their live value.
	Conflicts []FieldConflict
}

// Restore takes the step from before to after back on top of live. before is the
// before-image, after what the change made of it, live what is there now; ours
// tells the managers of the change. Metadata of the server and status are left as
// they are in live.
//
// A field that the change did not alter is nobody's business here. One that it
// did alter gets its old value if it still has the new one and nobody else has
// claimed it since; if it has its old value already there is nothing to do;
// anything else is a conflict. Lists are compared as a whole. What controllers are
// known to write is never a conflict.
func Restore(before, after, live *unstructured.Unstructured, ours func(manager string) bool) Restoration {
	m := merger{live: live, ours: ours, claimed: claimed(before, after, live, ours), owned: ownedByAnybody(before, live)}
	merged := m.value(nil, Strip(before).Object, Strip(after).Object, Strip(live).Object)
	desired := live.DeepCopy()
	if object, ok := merged.(map[string]any); ok {
		overlay(desired.Object, object)
	}
	return Restoration{Desired: desired, Conflicts: m.conflicts}
}

// overlay puts the merged fields over live and keeps what Strip took off live.
func overlay(live, merged map[string]any) {
	kept := Strip(&unstructured.Unstructured{Object: live}).Object
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
	live      *unstructured.Unstructured
	ours      func(string) bool
	claimed   *fieldpath.Set
	owned     *fieldpath.Set // by anybody
	conflicts []FieldConflict
}

// absent stands for a field that is not there; nil is an explicit null.
type absent struct{}

func (m *merger) value(path fieldpath.Path, before, after, live any) any {
	switch {
	case reflect.DeepEqual(before, after), reflect.DeepEqual(live, before):
		return live
	case reflect.DeepEqual(live, after) && !holdsBelow(m.claimed, path):
		return before
	case controllerFields.Has(path):
		return live
	}
	b, bok := asMap(before)
	a, aok := asMap(after)
	l, lok := asMap(live)
	atomic := m.claimed.Has(path) && len(l) > 0 && isLeaf(m.owned, path)
	if !bok || !aok || !lok || atomic {
		m.conflicts = append(m.conflicts, FieldConflict{Path: path.String(), Managers: ownersBelow(m.live, path, m.ours)})
		return live
	}
	return m.fields(path, b, a, l, before == (absent{}) || live == (absent{}))
}

// fields merges an object field by field. One that the change added whole, or that
// others removed whole, is not there when there is nothing in it.
func (m *merger) fields(path fieldpath.Path, before, after, live map[string]any, optional bool) any {
	out := map[string]any{}
	for _, name := range fieldNames(before, after, live) {
		below := append(path.Copy(), fieldpath.PathElement{FieldName: &name})
		v := m.value(below, field(before, name), field(after, name), field(live, name))
		if v != (absent{}) {
			out[name] = v
		}
	}
	if optional && len(out) == 0 {
		return absent{}
	}
	return out
}

// asMap gives a value as an object; a field that is not there is an empty one.
func asMap(v any) (map[string]any, bool) {
	if v == (absent{}) {
		return nil, true
	}
	object, ok := v.(map[string]any)
	return object, ok
}

func field(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	return absent{}
}

func fieldNames(objects ...map[string]any) []string {
	seen := map[string]bool{}
	var names []string
	for _, o := range objects {
		for name := range o {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	sort.Strings(names)
	return names
}

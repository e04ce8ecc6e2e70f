package fieldmerge

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// scene is an object with a history: what others wrote, a change of Janus, and what
// others wrote since.
type scene struct {
	*standIn
	d                         drawing
	before, after, made, live *unstructured.Unstructured
}

func drawScene(t testing.TB, r *rapid.T, writers []string, since int) *scene {
	s := &scene{standIn: newStandIn(failing{t, r}), d: drawing{T: r}}
	s.object = map[string]any{"metadata": map[string]any{"name": "a"}}
	s.put("creator", s.d.object())
	s.write([]string{"a", "b", "c"}, rapid.IntRange(0, 3).Draw(r, "writes before"))
	s.before = s.read()
	s.write([]string{"janus"}, 1)
	s.made = s.read()
	s.after = Strip(s.made)
	s.write(writers, since)
	s.live = s.read()
	return s
}

func (s *scene) typed(object map[string]any) *typed.TypedValue {
	v, err := thingType.FromUnstructured(clone(object))
	if err != nil {
		s.d.Fatal(err)
	}
	return v
}

func (s *scene) put(manager string, object map[string]any) {
	got, managers, err := s.updater.Update(s.typed(s.object), s.typed(object), "v1", s.managers.Copy(), manager+" Update")
	s.stored(manager+" Update", got, untracked(managers), err)
}

// withoutNull drops the nulls that structured-merge-diff makes of what an apply
// leaves empty. The API server stores none of them, save where no schema is.
func withoutNull(object map[string]any) {
	for name, v := range object {
		switch v := v.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			if name != "options" {
				withoutNull(v)
			}
		case []any:
			for _, item := range v {
				if inner, ok := item.(map[string]any); ok {
					withoutNull(inner)
				}
			}
		}
	}
}

// existing returns the entries of managedFields without fields that are not there.
func (s *scene) existing() []metav1.ManagedFieldsEntry {
	list, err := entriesOf(s.read())
	if err != nil {
		s.d.Fatal(err)
	}
	var out []metav1.ManagedFieldsEntry
	for _, e := range list {
		e, err := e.with(only(e.set, func(p fieldpath.Path) bool { return exists(s.object, p) }))
		if err != nil {
			s.d.Fatal(err)
		}
		if !e.set.Empty() {
			out = append(out, e.ManagedFieldsEntry)
		}
	}
	return out
}

// untracked leaves out the fields whose owners the API server does not keep.
func untracked(managers fieldpath.ManagedFields) fieldpath.ManagedFields {
	out := fieldpath.ManagedFields{}
	for id, set := range managers {
		tracked := set.Set().Difference(fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("metadata", "name")))
		if !tracked.Empty() {
			out[id] = fieldpath.NewVersionedSet(tracked, set.APIVersion(), set.Applied())
		}
	}
	return out
}

// write lets managers apply, replace and edit the object.
func (s *scene) write(managers []string, times int) {
	for range times {
		manager := rapid.SampledFrom(managers).Draw(s.d.T, "manager")
		switch rapid.SampledFrom([]string{"apply", "edit", "replace"}).Draw(s.d.T, "how") {
		case "apply":
			got, owned, err := s.updater.Apply(s.typed(s.object), s.typed(s.d.object()), "v1", s.managers.Copy(), manager+" Apply", true)
			s.stored(manager+" Apply", got, untracked(owned), err)
			withoutNull(s.object)
			s.own(s.existing())
		case "edit":
			s.put(manager, s.d.edited(s.object))
		case "replace":
			s.put(manager, s.d.object())
		}
	}
}

func (s *scene) images() Images {
	return Images{Type: thingType, Before: s.before, After: s.after, Live: s.live, Ours: isJanus}
}

// undo undoes the change as package mutate does, and reads the object again.
func (s *scene) undo() Restoration {
	images := s.images()
	wanted := images.Restore()
	if desired := fields(wanted.Desired); !reflect.DeepEqual(desired, s.object) {
		s.put("janus", desired)
	}
	images.Live = s.read()
	list, changed, err := images.RestoreOwners()
	if err != nil {
		s.d.Fatal(err)
	}
	if changed {
		s.own(list)
	}
	s.live = s.read()
	return wanted
}

// fields takes what a writer may set out of an object that was read.
func fields(obj *unstructured.Unstructured) map[string]any {
	out := Strip(obj).Object
	delete(out, "apiVersion")
	delete(out, "kind")
	return out
}

func (s *scene) describe() string {
	return "\nbefore " + line(s.before) + "\nafter " + line(s.after) + "\nlive " + line(s.live)
}

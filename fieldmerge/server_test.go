package fieldmerge

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/merge"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// standIn keeps an object and its owners by the rules of the API server, which are
// those of structured-merge-diff. It is for properties over many random histories;
// what the server itself does is tested in package mutate.
type standIn struct {
	t        testing.TB
	updater  merge.Updater
	object   map[string]any
	managers fieldpath.ManagedFields
	times    map[string]int
	clock    int
}

type oneVersion struct{}

func (oneVersion) Convert(v *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return v, nil
}
func (oneVersion) IsMissingVersionError(error) bool { return false }

func newStandIn(t testing.TB) *standIn {
	return &standIn{t: t, updater: merge.Updater{Converter: oneVersion{}}, object: map[string]any{}, managers: fieldpath.ManagedFields{}, times: map[string]int{}}
}

func (s *standIn) clone() *standIn {
	out := *s
	out.object = clone(s.object)
	out.managers = s.managers.Copy()
	out.times = map[string]int{}
	for k, v := range s.times {
		out.times[k] = v
	}
	return &out
}

func clone(object map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: object}).DeepCopy().Object
}

func (s *standIn) typed(object map[string]any) *typed.TypedValue {
	s.t.Helper()
	v, err := typed.DeducedParseableType.FromUnstructured(clone(object))
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// update replaces the object, apply forces fields on it.
func (s *standIn) update(manager string, object map[string]any) {
	s.t.Helper()
	got, managers, err := s.updater.Update(s.typed(s.object), s.typed(object), "v1", s.managers.Copy(), manager+" Update")
	s.stored(manager+" Update", got, managers, err)
}

func (s *standIn) apply(manager string, fields map[string]any) {
	s.t.Helper()
	got, managers, err := s.updater.Apply(s.typed(s.object), s.typed(fields), "v1", s.managers.Copy(), manager+" Apply", true)
	s.stored(manager+" Apply", got, managers, err)
}

func (s *standIn) stored(id string, got *typed.TypedValue, managers fieldpath.ManagedFields, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.clock++
	if got != nil {
		object, _ := got.AsValue().Unstructured().(map[string]any)
		s.object = clone(object)
	}
	if !managers.Equals(s.managers) {
		s.times[id] = s.clock
	}
	s.managers = managers
}

var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// read returns the object as the server would.
func (s *standIn) read() *unstructured.Unstructured {
	s.t.Helper()
	out := &unstructured.Unstructured{Object: clone(s.object)}
	out.SetAPIVersion("v1")
	out.SetKind("Thing")
	out.SetName("a")
	var list []metav1.ManagedFieldsEntry
	for id, set := range s.managers {
		var e metav1.ManagedFieldsEntry
		var operation string
		if _, err := fmt.Sscan(id, &e.Manager, &operation); err != nil {
			s.t.Fatal(err)
		}
		raw, err := set.Set().ToJSON()
		if err != nil {
			s.t.Fatal(err)
		}
		e.Operation, e.APIVersion, e.FieldsType = metav1.ManagedFieldsOperationType(operation), "v1", "FieldsV1"
		e.Time = &metav1.Time{Time: epoch.Add(time.Duration(s.times[id]) * time.Second)}
		e.FieldsV1 = &metav1.FieldsV1{}
		e.FieldsV1.SetRawBytes(raw)
		list = append(list, e)
	}
	sortAsServer(list)
	out.SetManagedFields(list)
	return out
}

// own takes managedFields as they are given.
func (s *standIn) own(list []metav1.ManagedFieldsEntry) {
	s.t.Helper()
	s.managers = fieldpath.ManagedFields{}
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetManagedFields(list)
	decoded, err := entriesOf(obj)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range decoded {
		id := e.Manager + " " + string(e.Operation)
		s.managers[id] = fieldpath.NewVersionedSet(e.set, "v1", e.Operation == metav1.ManagedFieldsOperationApply)
		s.times[id] = int(e.Time.Sub(epoch) / time.Second)
	}
}

// content takes what a writer may set out of an object that was read.
func content(obj *unstructured.Unstructured) map[string]any {
	out := clone(obj.Object)
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(out, name)
	}
	return out
}

// undo undoes a change as package mutate does: values, then owners.
func (s *standIn) undo(before, after *unstructured.Unstructured) Restoration {
	s.t.Helper()
	wanted := restore(before, after, s.read(), isJanus)
	if desired := content(wanted.Desired); !reflect.DeepEqual(desired, s.object) {
		s.update("janus", desired)
	}
	list, changed, err := restoreOwners(before, after, s.read(), isJanus)
	if err != nil {
		s.t.Fatal(err)
	}
	if changed {
		s.own(list)
	}
	return wanted
}

func isJanus(manager string) bool { return manager == "janus" }

// owners returns who owns each field that is no object.
func (s *standIn) owners() map[string][]string {
	out := map[string][]string{}
	for id, set := range s.managers {
		set.Set().Iterate(func(p fieldpath.Path) { out[p.String()] = append(out[p.String()], id) })
	}
	for _, ids := range out {
		slices.Sort(ids)
	}
	return out
}

// random is the same in every run.
func random(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // G404: nothing secret is made of it.
}

// anyObject makes a small object. The name of a field tells its type, and no
// object in it is empty.
func anyObject(r *rand.Rand) map[string]any {
	scalars := func(n int) map[string]any {
		out := map[string]any{}
		for i := range n {
			if r.IntN(2) == 0 {
				out[fmt.Sprint("s", i)] = int64(r.IntN(3))
			}
		}
		return out
	}
	spec := scalars(3)
	for _, name := range []string{"m0", "m1"} {
		if inner := scalars(3); len(inner) > 0 && r.IntN(3) > 0 {
			spec[name] = inner
		}
	}
	if r.IntN(2) == 0 {
		spec["l0"] = []any{"a", "b", "c"}[:1+r.IntN(3)]
	}
	if len(spec) == 0 {
		spec["s0"] = int64(0)
	}
	return map[string]any{"spec": spec}
}

// leaves flattens an object.
func leaves(object map[string]any) map[string]any {
	out := map[string]any{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		inner, ok := v.(map[string]any)
		if !ok {
			out[path] = v
			return
		}
		for name, v := range inner {
			walk(path+"."+name, v)
		}
	}
	walk("", object)
	return out
}

package random

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/mutate"
	"janus.io/janus/test/harness"
)

// check holds the end of the Transaction against what would be there had everybody
// else written the same in another namespace: with the changes made plainly, if it
// is Committed, and without them if not.
func (r *run) check(t *rapid.T, twin *harness.Env) {
	committed := r.txn.Status.Phase == api.PhaseCommitted
	for _, w := range r.before {
		if _, err := w.in(twin, r.randomCase); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range r.log {
		var err error
		switch {
		case e.write != nil:
			_, err = e.write.in(twin, r.randomCase)
		case e.do >= 0 && committed:
			err = r.plainly(twin, e.do)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r.checkPhase(t)
	r.checkNames(t)
	for i, o := range r.objects {
		is, wanted := r.Object(o.ref()), twin.Object(o.ref())
		got, want := any(comparable(is)), any(comparable(wanted))
		if !committed {
			got, want = inAnyOrder("", got), inAnyOrder("", want)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s is\n%v\nwant\n%v", o.ref(), got, want)
		}
		if left := r.ItemManagers(o.ref()); len(left) > 0 {
			t.Fatalf("%s: managers of items are left: %v", o.ref(), left)
		}
		switch {
		case committed:
		case !r.writtenSince(i):
			r.Same(r.start[i], o.ref())
		default:
			r.checkOwners(t, i, is, wanted)
			r.checkOrder(t, i, is)
		}
	}
	r.NothingLeft(r.txn.Name)
	if committed {
		r.ClearedUp(r.txn.Name)
	}
}

// comparable is an object without what differs from one namespace to another: what
// the server sets, the namespace, the addresses of a Service; and without what
// an object that Janus has made says of it.
func comparable(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	out := fieldmerge.Strip(obj).Object
	for _, path := range [][]string{
		{"metadata", "namespace"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"},
		{"metadata", "annotations", mutate.MarkerAnnotation}, {"metadata", "annotations", api.TransactionKey},
		{"metadata", "labels", api.TransactionKey},
	} {
		unstructured.RemoveNestedField(out, path...)
	}
	for _, name := range []string{"annotations", "labels"} {
		if left, found, _ := unstructured.NestedMap(out, "metadata", name); found && len(left) == 0 {
			unstructured.RemoveNestedField(out, "metadata", name)
		}
	}
	return out
}

// keyed are the lists whose items have an identity, with the fields that are it; none
// for those of a set.
var keyed = map[string][]string{"ports": {"port", "protocol"}, "containers": {"name"}, "env": {"name"}, "parts": {"name"}, "tags": {}}

// identityOf returns the identity of each item of a list.
func identityOf(list []any, keys []string) []string {
	var out []string
	for _, item := range list {
		id := fmt.Sprint(item)
		if object, ok := item.(map[string]any); ok {
			id = ""
			for _, key := range keys {
				id += fmt.Sprint(object[key], " ")
			}
		}
		out = append(out, id)
	}
	return out
}

// inAnyOrder is a value with keyed lists made objects. An item that others add comes
// after the one that it followed, and where what the change had removed goes between
// the two, is as good before as after it.
func inAnyOrder(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			out[key] = inAnyOrder(key, inner)
		}
		return out
	case []any:
		keys, ok := keyed[name]
		if !ok {
			return v
		}
		out := map[string]any{}
		for i, id := range identityOf(v, keys) {
			out[id] = inAnyOrder("", v[i])
		}
		return out
	default:
		return v
	}
}

// checkOrder: what was there before the Transaction is in the order that it had.
func (r *run) checkOrder(t *rapid.T, object int, is *unstructured.Unstructured) {
	was, now := map[string][]string{}, map[string][]string{}
	orders(was, "", "", r.start[object].Object)
	orders(now, "", "", is.Object)
	for list, before := range was {
		common := func(some, others []string) []string {
			return slices.DeleteFunc(slices.Clone(some), func(id string) bool { return !slices.Contains(others, id) })
		}
		if !slices.Equal(common(before, now[list]), common(now[list], before)) {
			t.Fatalf("%s of %s: %v, was %v", list, is.GetName(), now[list], before)
		}
	}
}

// orders finds the identities in every keyed list.
func orders(out map[string][]string, path, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			orders(out, path+"."+key, key, inner)
		}
	case []any:
		if keys, ok := keyed[name]; ok {
			out[path] = identityOf(v, keys)
			for i, id := range out[path] {
				orders(out, path+"["+id+"]", "", v[i])
			}
		}
	}
}

// writtenSince reports whether others wrote an object after the Transaction began.
func (r *run) writtenSince(object int) bool {
	return slices.ContainsFunc(r.log, func(e event) bool { return e.write != nil && e.write.object == object })
}

// checkOwners compares who owns which fields, and since when. Two things depend on
// who came first, and are left out: who owns an object or list itself, and not what
// is in it; and where another client has written a field that a change altered too,
// the owners of what it is in.
func (r *run) checkOwners(t *rapid.T, object int, is, wanted *unstructured.Unstructured) {
	if is == nil || len(r.contested(object)) > 0 {
		return
	}
	got, want := r.ownersIn(t, is), r.ownersIn(t, wanted)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("owners of %s:\n%v\nwant\n%v", is.GetName(), got, want)
	}
	for _, had := range r.start[object].GetManagedFields() {
		for _, has := range is.GetManagedFields() {
			if id(had) == id(has) && had.Subresource != "status" && !r.wrote(had.Manager) && !had.Time.Equal(has.Time) {
				t.Fatalf("%s: the time of %s was %v and is %v", is.GetName(), id(had), had.Time, has.Time)
			}
		}
	}
}

func (r *run) wrote(manager string) bool {
	return slices.ContainsFunc(r.log, func(e event) bool { return e.write != nil && e.write.manager == manager })
}

func id(e metav1.ManagedFieldsEntry) string {
	return strings.Join([]string{e.Manager, string(e.Operation), e.Subresource, e.APIVersion}, " ")
}

func (r *run) ownersIn(t *rapid.T, obj *unstructured.Unstructured) map[string][]string {
	out := map[string][]string{}
	for _, e := range obj.GetManagedFields() {
		if e.Subresource == "status" {
			continue
		}
		set := fieldpath.NewSet()
		if err := set.FromJSON(strings.NewReader(e.FieldsV1.GetRawString())); err != nil {
			t.Fatal(err)
		}
		set.Leaves().Iterate(func(p fieldpath.Path) { out[id(e)] = append(out[id(e)], p.String()) })
		sort.Strings(out[id(e)])
	}
	return out
}

// claim is a field that another client wrote between a change that altered it and the
// compensation of that.
type claim struct {
	object, path string
	// former is set where the writer had written the object before, too.
	former bool
}

func (r *run) contested(object int) []claim {
	var out []claim
	for at, e := range r.log {
		if e.write == nil || e.write.object != object {
			continue
		}
		for f := range e.write.values {
			field := r.objects[object].fields[f]
			for item := range r.items {
				was, made := field.get(r.pre[item]), field.get(r.post[item])
				back := was == nil && e.write.how == "remove" // what the change had added
				if r.items[item].object == object && r.inEffect(item, at) && !reflect.DeepEqual(was, made) && !back {
					out = append(out, claim{r.objects[object].name, field.path, e.write.manager[0] == 'm' && e.write.how != "remove"})
				}
			}
		}
	}
	return out
}

// inEffect reports whether an item was done before a moment and rolled back after.
func (r *run) inEffect(item, moment int) bool {
	do := slices.IndexFunc(r.log, func(e event) bool { return e.do == item })
	undo := slices.IndexFunc(r.log, func(e event) bool { return e.undo == item })
	return do >= 0 && do < moment && undo > moment
}

// drifted reports whether another client wrote an object between the moment when
// Janus looked at it for a change and that change. For the first change of an
// object this is when all are prepared, for one that follows just before it.
func (r *run) drifted() bool {
	for at, e := range r.log {
		if e.write == nil {
			continue
		}
		first := slices.IndexFunc(r.items, func(i randomItem) bool { return i.object == e.write.object })
		for item := range r.items {
			do := slices.IndexFunc(r.log, func(e event) bool { return e.do == item })
			if r.items[item].object == e.write.object && do > at && (item == first || do == at+1) {
				return true
			}
		}
	}
	return false
}

// named lists the fields that the status says were left to others, as conflicts and
// as reclaimed.
func (r *run) named() (conflicts, reclaimed []claim) {
	for _, item := range r.txn.Status.Items {
		for _, c := range item.Conflicts {
			conflicts = append(conflicts, claim{object: item.Target.Name, path: c.Field})
		}
		for _, owned := range item.Reclaimed {
			for _, path := range owned.Fields {
				reclaimed = append(reclaimed, claim{object: item.Target.Name, path: path})
			}
		}
	}
	return conflicts, reclaimed
}

// in reports whether one of some claims is about a field or what it is in.
func (c claim) in(some []claim) bool {
	return slices.ContainsFunc(some, func(s claim) bool {
		return c.object == s.object && (c.path == s.path || strings.HasPrefix(c.path, s.path+".") || strings.HasPrefix(c.path, s.path+"["))
	})
}

// checkNames: what was contested is named, and nothing else.
func (r *run) checkNames(t *rapid.T) {
	conflicts, reclaimed := r.named()
	all := append(slices.Clone(conflicts), reclaimed...)
	var contested []claim
	for i := range r.objects {
		contested = append(contested, r.contested(i)...)
	}
	for _, c := range contested {
		if !c.in(all) {
			t.Fatalf("%v is contested, and not named in %v or %v", c, conflicts, reclaimed)
		}
	}
	for _, s := range all {
		if !slices.ContainsFunc(contested, func(c claim) bool { return c.in([]claim{s}) }) {
			t.Fatalf("%v is named and not contested: %v", s, contested)
		}
	}
}

// checkPhase: without anything in its way the Transaction is Committed; it is Failed
// where others have written what it had changed; else it is RolledBack.
func (r *run) checkPhase(t *rapid.T) {
	conflicts, _ := r.named()
	want := api.PhaseRolledBack
	switch {
	case !r.refused && !r.drifted():
		want = api.PhaseCommitted
	case len(conflicts) > 0:
		want = api.PhaseFailed
	}
	if r.txn.Status.Phase != want {
		t.Fatalf("the Transaction is %s, want %s", r.txn.Status.Phase, want)
	}
}

package fieldmerge

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// history is what others do before and after a change of Janus.
func history(s *standIn, r *rand.Rand, managers []string, steps int) {
	for range steps {
		manager := managers[r.IntN(len(managers))]
		if r.IntN(2) == 0 {
			s.apply(manager, anyObject(r))
		} else {
			s.update(manager, anyObject(r))
		}
	}
}

// change lets Janus make a change, and returns what a dry run of it would have given.
func change(s *standIn, r *rand.Rand) (before, after *unstructured.Unstructured) {
	before = s.read()
	if r.IntN(2) == 0 {
		s.apply("janus", anyObject(r))
	} else {
		s.update("janus", anyObject(r))
	}
	return before, Strip(s.read())
}

func TestOwnersAreAsBeforeWhenNobodyElseWrote(t *testing.T) {
	t.Parallel()
	r := random(26)
	for range 150 {
		s := newStandIn(t)
		s.update("creator", anyObject(r))
		history(s, r, []string{"a", "b", "c"}, r.IntN(5))
		before, after := change(s, r)
		if wanted := s.undo(before, after); len(wanted.Conflicts) > 0 {
			t.Fatalf("conflicts with nobody: %v", wanted.Conflicts)
		}
		if got := s.read(); !reflect.DeepEqual(got, before) {
			t.Fatalf("got\n%s\nbefore\n%s\nafter\n%s", text(got), text(before), text(after))
		}
	}
}

func TestOwnersOfWhatOthersWroteSinceStay(t *testing.T) {
	t.Parallel()
	r := random(26)
	for range 150 {
		s := newStandIn(t)
		s.update("creator", anyObject(r))
		history(s, r, []string{"a", "b", "c"}, r.IntN(5))
		owned := s.owners()
		before, after := change(s, r)
		took := s.clone()
		// New managers only, so that what they own is what they have asserted since.
		history(s, r, []string{"x", "y"}, 1+r.IntN(3))
		live := s.clone()
		wanted := s.undo(before, after)
		// A conflict is about a field and everything in it.
		inConflict := func(path string) bool {
			return slices.ContainsFunc(conflictsOf(wanted), func(c string) bool { return path == c || strings.HasPrefix(path, c+".") })
		}
		b, a, l, now := leaves(content(before)), leaves(content(after)), leaves(live.object), leaves(s.object)
		for path := range now {
			mine, theirs := owned[path], since(live.owners()[path])
			got := s.owners()[path]
			bv, inB := b[path]
			av, inA := a[path]
			altered := inB != inA || !reflect.DeepEqual(bv, av)
			switch {
			case slices.ContainsFunc(got, func(id string) bool { return id == "janus Apply" || id == "janus Update" }):
				t.Fatalf("%s is still ours: %v", path, got)
			case len(theirs) > 0 && !subset(theirs, got):
				t.Fatalf("%s was of %v and is of %v\nbefore %s\nafter %s\nlive %s", path, theirs, got, text(before), text(after), text(live.read()))
			case altered && len(theirs) == 0 && reflect.DeepEqual(now[path], bv) && inB && !slices.Equal(got, mine):
				t.Fatalf("%s was of %v and is of %v\nbefore %s\nafter %s\nlive %s", path, mine, got, text(before), text(after), text(live.read()))
			case altered && len(theirs) > 0 && reflect.DeepEqual(l[path], av) && inA && !inConflict(path):
				t.Fatalf("%s was claimed by %v with our value, and is no conflict: %v", path, theirs, wanted.Conflicts)
			case !altered && !slices.Equal(got, withoutJanus(live.owners()[path])):
				t.Fatalf("%s was not ours and had %v, but has %v (took %v)", path, live.owners()[path], got, took.owners()[path])
			}
		}
		// Once more: nothing to do.
		stored := s.read()
		again := s.undo(before, after)
		if !reflect.DeepEqual(s.read(), stored) {
			t.Fatalf("twice:\n%s\nonce:\n%s", text(s.read()), text(stored))
		}
		if !slices.Equal(conflictsOf(again), conflictsOf(wanted)) {
			t.Fatalf("conflicts %v, and then %v", wanted.Conflicts, again.Conflicts)
		}
	}
}

// A crash between the values and the owners is harmless.
func TestOwnersAreRestoredAfterACrashBetweenValuesAndOwners(t *testing.T) {
	t.Parallel()
	r := random(26)
	for range 80 {
		s := newStandIn(t)
		s.update("creator", anyObject(r))
		history(s, r, []string{"a", "b", "c"}, r.IntN(4))
		before, after := change(s, r)
		if desired := content(restore(before, after, s.read(), isJanus).Desired); !reflect.DeepEqual(desired, s.object) {
			s.update("janus", desired)
		}
		s.undo(before, after)
		if got := s.read(); !reflect.DeepEqual(got, before) {
			t.Fatalf("got\n%s\nbefore\n%s", text(got), text(before))
		}
	}
}

func since(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id[0] != 'x' && id[0] != 'y' })
}

func withoutJanus(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "janus Apply" || id == "janus Update" })
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(id string) bool { return !slices.Contains(all, id) })
}

func text(obj *unstructured.Unstructured) string {
	out, _ := json.MarshalIndent(obj.Object, "", " ")
	return string(out)
}

// owned makes an object with managedFields; each entry is "manager operation
// version subresource second fields".
func owned(t *testing.T, object string, list ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	t.Helper()
	out := thingOf(t, object)
	out.SetManagedFields(list)
	return out
}

func by(manager string, operation metav1.ManagedFieldsOperationType, second int, fields string) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}
	e.FieldsV1.SetRawBytes([]byte(fields))
	if second > 0 {
		e.Time = &metav1.Time{Time: epoch.Add(metav1.Duration{}.Duration)}
		e.Time.Time = epoch.AddDate(0, 0, second)
	}
	return e
}

func with(e metav1.ManagedFieldsEntry, version, subresource string) metav1.ManagedFieldsEntry {
	e.APIVersion, e.Subresource = version, subresource
	return e
}

const (
	applied = metav1.ManagedFieldsOperationApply
	updated = metav1.ManagedFieldsOperationUpdate
)

func TestRestoreOwners(t *testing.T) {
	t.Parallel()
	changed := `{"a":2,"b":1}`
	cases := []struct {
		name                   string
		object                 string
		before, live, want     []metav1.ManagedFieldsEntry
		values                 string // of live; as before unless given
		nothing, withoutBefore bool
	}{
		{name: "takes ours away and gives back what it took, with its time",
			before: []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:a":{},"f:b":{}}`)},
			live:   []metav1.ManagedFieldsEntry{by("janus", applied, 5, `{"f:a":{}}`), by("kubectl", applied, 1, `{"f:b":{}}`)},
			want:   []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:a":{},"f:b":{}}`)}},
		{name: "brings back an entry that vanished, whole",
			before: []metav1.ManagedFieldsEntry{by("scaler", updated, 1, `{"f:a":{}}`)},
			live:   []metav1.ManagedFieldsEntry{by("janus", updated, 5, `{"f:a":{}}`)},
			want:   []metav1.ManagedFieldsEntry{by("scaler", updated, 1, `{"f:a":{}}`)}},
		{name: "keeps a missing time missing",
			before: []metav1.ManagedFieldsEntry{with(by("scaler", updated, 0, `{"f:a":{}}`), "v1", "scale")},
			live:   []metav1.ManagedFieldsEntry{by("janus", updated, 5, `{"f:a":{}}`)},
			want:   []metav1.ManagedFieldsEntry{with(by("scaler", updated, 0, `{"f:a":{}}`), "v1", "scale")}},
		{name: "keeps the newer time of a manager that wrote since",
			before: []metav1.ManagedFieldsEntry{by("u", updated, 1, `{"f:a":{}}`)},
			live:   []metav1.ManagedFieldsEntry{by("janus", updated, 5, `{"f:a":{}}`), by("u", updated, 7, `{"f:b":{}}`)},
			want:   []metav1.ManagedFieldsEntry{by("u", updated, 7, `{"f:a":{},"f:b":{}}`)}},
		{name: "gives nothing back that a manager gave up by itself",
			before: []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:a":{},"f:b":{}}`), by("u", updated, 1, `{"f:b":{}}`)},
			live:   []metav1.ManagedFieldsEntry{by("janus", applied, 5, `{"f:a":{}}`), by("kubectl", applied, 7, `{"f:c":{}}`), by("u", updated, 1, `{"f:b":{}}`)},
			want:   []metav1.ManagedFieldsEntry{by("kubectl", applied, 7, `{"f:a":{},"f:c":{}}`), by("u", updated, 1, `{"f:b":{}}`)}},
		{name: "gives nothing back that another client has claimed since",
			values: changed,
			before: []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:a":{},"f:b":{}}`)},
			live:   []metav1.ManagedFieldsEntry{by("gitops", applied, 6, `{"f:a":{}}`), by("janus", applied, 5, `{"f:a":{}}`), by("kubectl", applied, 1, `{"f:b":{}}`)},
			want:   []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:b":{}}`), by("gitops", applied, 6, `{"f:a":{}}`)}},
		{name: "gives back nothing that does not exist",
			values: `{"b":1}`,
			before: []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:a":{},"f:b":{}}`)},
			live:   []metav1.ManagedFieldsEntry{by("janus", applied, 5, `{"f:a":{}}`), by("kubectl", applied, 1, `{"f:b":{}}`)},
			want:   []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:b":{}}`)}},
		{name: "leaves the owners of the status alone",
			before: []metav1.ManagedFieldsEntry{with(by("ctl", updated, 1, `{"f:status":{"f:x":{}}}`), "v1", "status")},
			live:   []metav1.ManagedFieldsEntry{by("janus", applied, 5, `{"f:a":{}}`), with(by("ctl", updated, 6, `{"f:status":{"f:y":{}}}`), "v1", "status")},
			want:   []metav1.ManagedFieldsEntry{with(by("ctl", updated, 6, `{"f:status":{"f:y":{}}}`), "v1", "status")}},
		{name: "takes apart the oldest updaters that the server merged, ours among them",
			before: []metav1.ManagedFieldsEntry{by("u1", updated, 1, `{"f:b":{}}`), with(by("ctl", updated, 2, `{"f:status":{"f:x":{}}}`), "v1", "status"), by("u3", updated, 3, `{"f:c":{}}`)},
			live:   []metav1.ManagedFieldsEntry{by("ancient-changes", updated, 5, `{"f:a":{},"f:b":{},"f:status":{"f:x":{}}}`), by("u3", updated, 3, `{"f:c":{}}`)},
			want:   []metav1.ManagedFieldsEntry{by("u1", updated, 1, `{"f:b":{}}`), with(by("ctl", updated, 2, `{"f:status":{"f:x":{}}}`), "v1", "status"), by("u3", updated, 3, `{"f:c":{}}`)}},
		{name: "keeps what was merged before",
			before: []metav1.ManagedFieldsEntry{by("ancient-changes", updated, 1, `{"f:c":{}}`), by("u1", updated, 2, `{"f:b":{}}`)},
			live:   []metav1.ManagedFieldsEntry{by("ancient-changes", updated, 2, `{"f:b":{},"f:c":{}}`), by("janus", updated, 5, `{"f:a":{}}`)},
			want:   []metav1.ManagedFieldsEntry{by("ancient-changes", updated, 1, `{"f:c":{}}`), by("u1", updated, 2, `{"f:b":{}}`)}},
		{name: "drops the entry of what was there before the first apply, which was ours",
			live: []metav1.ManagedFieldsEntry{by("before-first-apply", updated, 5, `{"f:b":{}}`), by("janus", applied, 5, `{"f:a":{}}`)}},
		{name: "drops it where others have applied since, too, and keeps what they own",
			live: []metav1.ManagedFieldsEntry{by("gitops", applied, 6, `{"f:b":{}}`), by("before-first-apply", updated, 5, `{"f:b":{}}`), by("janus", applied, 5, `{"f:a":{}}`)},
			want: []metav1.ManagedFieldsEntry{by("gitops", applied, 6, `{"f:b":{}}`)}},
		{name: "brings back the entry of another version whole, when nobody wrote since",
			before: []metav1.ManagedFieldsEntry{with(by("old", updated, 1, `{"f:formerly":{},"f:b":{}}`), "v1beta1", "")},
			live:   []metav1.ManagedFieldsEntry{by("janus", applied, 5, `{"f:a":{}}`), with(by("old", updated, 1, `{"f:b":{}}`), "v1beta1", "")},
			want:   []metav1.ManagedFieldsEntry{with(by("old", updated, 1, `{"f:b":{},"f:formerly":{}}`), "v1beta1", "")}},
		{name: "does not mix the versions of an applier",
			before: []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:a":{},"f:b":{}}`)},
			live:   []metav1.ManagedFieldsEntry{by("janus", applied, 5, `{"f:a":{}}`), with(by("kubectl", applied, 6, `{"f:other":{}}`), "v2", "")},
			want:   []metav1.ManagedFieldsEntry{with(by("kubectl", applied, 6, `{"f:other":{}}`), "v2", "")}},
		{name: "writes nothing where there is nothing to do, whatever the order",
			before:  []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:a":{}}`), by("u", updated, 2, `{"f:b":{}}`)},
			live:    []metav1.ManagedFieldsEntry{by("u", updated, 2, `{"f:b":{}}`), by("x", updated, 1, `{"f:c":{}}`), by("kubectl", applied, 1, `{"f:a":{}}`)},
			want:    []metav1.ManagedFieldsEntry{by("kubectl", applied, 1, `{"f:a":{}}`), by("x", updated, 1, `{"f:c":{}}`), by("u", updated, 2, `{"f:b":{}}`)},
			nothing: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			const was = `{"a":1,"b":1,"c":1,"status":{"x":1}}`
			if c.values == "" {
				c.values = was
			}
			got, changed, err := restoreOwners(owned(t, was, c.before...), thingOf(t, `{"a":2,"b":1,"c":1}`), owned(t, c.values, c.live...), isJanus)
			if err != nil {
				t.Fatal(err)
			}
			if changed == c.nothing {
				t.Errorf("to be written: %t", changed)
			}
			wanted := owned(t, was, c.want...).GetManagedFields()
			if !sameEntries(got, wanted) {
				x, _ := json.MarshalIndent(got, "", " ")
				y, _ := json.MarshalIndent(wanted, "", " ")
				t.Errorf("got %s\nwant %s", x, y)
			}
		})
	}
}

// An atomic object is owned as one field.
func TestAtomicObjectThatSomebodyClaimedIsAConflict(t *testing.T) {
	t.Parallel()
	before := owned(t, `{"selector":{"a":"1"}}`, by("kubectl", applied, 1, `{"f:selector":{}}`))
	after := thingOf(t, `{"selector":{"a":"2"}}`)
	ours := owned(t, `{"selector":{"a":"2"}}`, by("janus", applied, 5, `{"f:selector":{}}`))
	if r := restore(before, after, ours, isJanus); len(r.Conflicts) > 0 || !reflect.DeepEqual(Strip(r.Desired), Strip(before)) {
		t.Errorf("got %v %v", r.Desired.Object, r.Conflicts)
	}
	claimed := owned(t, `{"selector":{"a":"2"}}`, by("gitops", applied, 6, `{"f:selector":{}}`), by("janus", applied, 5, `{"f:selector":{}}`))
	r := restore(before, after, claimed, isJanus)
	if len(r.Conflicts) != 1 || r.Conflicts[0].String() != ".selector (now of gitops)" || !reflect.DeepEqual(r.Desired, claimed) {
		t.Errorf("got %v %v", r.Desired.Object, r.Conflicts)
	}
	list, _, err := restoreOwners(before, after, claimed, isJanus)
	if err != nil || len(list) != 1 || list[0].Manager != "gitops" {
		t.Errorf("owners %v, %v", list, err)
	}
}

// A manager inside a list is no owner of all of it.
func TestUnchangedItemsOfAListAreNoClaim(t *testing.T) {
	t.Parallel()
	const items = `{"f:l":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:n":{}}}}`
	before := owned(t, `{"l":[{"name":"x","n":1}]}`, by("kubectl", applied, 1, items))
	after := thingOf(t, `{"l":[{"name":"x","n":1},{"name":"y"}]}`)
	live := owned(t, `{"l":[{"name":"x","n":1},{"name":"y"}]}`, by("kubectl", applied, 1, items),
		by("janus", applied, 5, `{"f:l":{"k:{\"name\":\"y\"}":{".":{},"f:name":{}}}}`))
	r := restore(before, after, live, isJanus)
	if len(r.Conflicts) > 0 || !reflect.DeepEqual(Strip(r.Desired), Strip(before)) {
		t.Errorf("got %v %v", r.Desired.Object, r.Conflicts)
	}
	list, changed, err := restoreOwners(before, after, owned(t, `{"l":[{"name":"x","n":1}]}`, live.GetManagedFields()...), isJanus)
	if err != nil || !changed || !sameEntries(list, before.GetManagedFields()) {
		t.Errorf("owners %v, %t, %v", list, changed, err)
	}
}

// The API server leaves out the data of a Secret that has none, and keeps its applier.
func TestAnEmptyObjectThatIsLeftOutKeepsItsOwner(t *testing.T) {
	t.Parallel()
	before := owned(t, `{"a":1}`, by("kubectl", applied, 1, `{"f:data":{}}`))
	after := thingOf(t, `{"a":1,"data":{"x":"1"}}`)
	for name, c := range map[string]struct {
		live, want *unstructured.Unstructured
	}{
		"nobody has written since": {
			owned(t, `{"a":1}`, by("janus", updated, 5, `{"f:data":{".":{},"f:x":{}}}`)), before},
		"another client has a part of it": {
			owned(t, `{"a":1,"data":{"y":"2"}}`, by("u", updated, 6, `{"f:data":{"f:y":{}}}`)),
			owned(t, `{"a":1}`, by("kubectl", applied, 1, `{"f:data":{}}`), by("u", updated, 6, `{"f:data":{"f:y":{}}}`))},
		"another client has taken it": {
			owned(t, `{"a":1,"data":2}`, by("u", updated, 6, `{"f:data":{}}`)),
			owned(t, `{"a":1}`, by("u", updated, 6, `{"f:data":{}}`))},
	} {
		list, _, err := restoreOwners(before, after, c.live, isJanus)
		if err != nil || !sameEntries(list, c.want.GetManagedFields()) {
			t.Errorf("%s: owners %v, %v", name, list, err)
		}
	}
}

func TestUnreadableOwnersAreAnError(t *testing.T) {
	t.Parallel()
	good, bad := owned(t, `{"a":1}`), owned(t, `{"a":1}`, by("u", updated, 1, `{"k:1":{}}`))
	for _, pair := range [][2]*unstructured.Unstructured{{good, bad}, {bad, good}} {
		if _, _, err := restoreOwners(pair[0], good, pair[1], isJanus); err == nil {
			t.Error("no error")
		}
	}
}

func FuzzOwners(f *testing.F) {
	f.Add([]byte(`{"f:a":{},"f:m":{".":{},"f:b":{}}}`), []byte(`{"f:a":{}}`), []byte(`{"a":1,"m":{"b":2}}`), []byte(`{"a":2}`))
	f.Add([]byte(`{"f:l":{"k:{\"name\":\"x\"}":{".":{}},"v:\"y\"":{},"i:3":{}}}`), []byte(`{}`), []byte(`{"l":[{"name":"x"},"y",1,null]}`), []byte(`{"l":null}`))
	f.Fuzz(func(t *testing.T, fields, more, object, changed []byte) {
		var content, after map[string]any
		if json.Unmarshal(object, &content) != nil || json.Unmarshal(changed, &after) != nil || content == nil || after == nil {
			return
		}
		for _, o := range []map[string]any{content, after} {
			delete(o, "metadata")
		}
		before := thing(content)
		before.SetManagedFields([]metav1.ManagedFieldsEntry{by("a", applied, 1, string(fields)), by("b", updated, 2, string(more))})
		live := before.DeepCopy()
		live.SetManagedFields([]metav1.ManagedFieldsEntry{by("ancient-changes", updated, 3, string(fields)), by("janus", applied, 4, string(more)), by("a", applied, 1, string(more))})
		if _, err := entriesOf(before); err != nil {
			return
		}
		list, changes, err := restoreOwners(before, thing(after), live, isJanus)
		if err != nil {
			t.Fatal(err)
		}
		restored := live.DeepCopy()
		restored.SetManagedFields(list)
		if Owned(restored, isJanus) {
			t.Fatal("ours is left")
		}
		if again, more, err := restoreOwners(before, thing(after), restored, isJanus); err != nil || more && changes && !sameEntries(again, list) {
			t.Fatalf("twice: %v %v, once: %v", again, err, list)
		}
		restore(before, thing(after), live, isJanus)
		drift(before, live)
	})
}

package fieldmerge

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"a":1,"m":{"b":null}}`), []byte(`{"a":2}`), []byte(`{"a":2,"c":[1]}`))
	f.Add([]byte(`{"metadata":{"labels":{"a":"b"}}}`), []byte(`{"metadata":{"labels":{}}}`), []byte(`{"status":1}`))
	f.Fuzz(func(t *testing.T, b, a, l []byte) {
		var objects [3]*unstructured.Unstructured
		for i, text := range [][]byte{b, a, l} {
			var content map[string]any
			if err := utiljson.Unmarshal(text, &content); err != nil || content == nil {
				return
			}
			if _, ok := content["metadata"].(map[string]any); !ok {
				delete(content, "metadata")
			}
			objects[i] = thing(content)
		}
		before, after, live := objects[0], objects[1], objects[2]
		same := func(what string, got, want *unstructured.Unstructured) {
			t.Helper()
			x, _ := json.Marshal(got.Object)
			y, _ := json.Marshal(want.Object)
			if string(x) != string(y) {
				t.Fatalf("%s: got %s, want %s", what, x, y)
			}
		}
		r := restore(before, after, after, nobody)
		same("what the change made", Strip(r.Desired), Strip(before))
		if len(r.Conflicts) > 0 {
			t.Fatalf("conflicts with nobody: %v", r.Conflicts)
		}
		same("what was before", restore(before, after, before, nobody).Desired, before)
		same("a change of nothing", restore(before, before, live, nobody).Desired, live)
		once := restore(before, after, live, nobody)
		twice := restore(before, after, once.Desired, nobody)
		same("twice", twice.Desired, once.Desired)
		drift(before, live)
		if stand(before, after, after) != AtAfter {
			t.Fatal("what the change made does not stand at after")
		}
	})
}

// fuzzed makes an object of arbitrary JSON, without owners; nil if it is none.
func fuzzed(text []byte) *unstructured.Unstructured {
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil || content == nil {
		return nil
	}
	meta, ok := content["metadata"].(map[string]any)
	if !ok {
		delete(content, "metadata")
	}
	delete(meta, "managedFields")
	return thing(content)
}

func FuzzMergeWithSchema(f *testing.F) {
	const object = `{"metadata":{"labels":{"x":"v"},"finalizers":["x","y"]},"spec":{"size":1,"limits":{},"selector":{"x":"v"},` +
		`"ports":[{"port":1,"protocol":"TCP","title":"a"},{"port":1,"protocol":"UDP"},{"port":2}],` +
		`"parts":[{"name":"x","count":1,"env":[{"name":"x","value":"v"},{"name":"y"}],"steps":["a","a"]},{"name":"y"}],` +
		`"tags":["x","y"],"steps":["a","b"],"options":{"x":null,"y":{"deep":{"x":1}},"z":[1,{"a":[]}]},"template":{"size":1}},"status":{"a":1}}`
	const changed = `{"metadata":{"labels":{"x":"w"},"finalizers":["y"]},"spec":{"selector":{"x":"w"},"ports":[{"port":2,"protocol":"TCP"}],` +
		`"parts":[{"name":"x","env":[{"name":"y","value":"w"},{"name":"z"}]},{"name":"z"}],"tags":["z","x"],"steps":["b"],"options":{"y":{}},"template":{}}}`
	f.Add([]byte(object), []byte(changed), []byte(object))
	f.Add([]byte(object), []byte(changed), []byte(`{"spec":{"parts":[{"name":"x","count":2},{"name":"w"}],"tags":["w"],"ports":[{"port":2}],"options":{"y":{"deep":3}}}}`))
	f.Add([]byte(`{"spec":{"parts":[{"name":"x","count":1}]}}`), []byte(`{"spec":{"parts":[{"name":"x"}]}}`), []byte(`{"spec":{"parts":[]}}`))
	f.Add([]byte(`{"spec":{"parts":[{"count":1},null,1]}}`), []byte(`{"spec":{"tags":[{"a":1},{"a":1}]}}`), []byte(`{"spec":{"ports":{"port":[]},"parts":"x"}}`))
	f.Fuzz(func(t *testing.T, b, a, l []byte) {
		before, after, live := fuzzed(b), fuzzed(a), fuzzed(l)
		if before == nil || after == nil || live == nil {
			return
		}
		for _, kind := range []typed.ParseableType{thingType, typed.DeducedParseableType} {
			checkMerge(t, Images{Type: kind, Before: before, After: after, Live: live, Ours: nobody})
		}
	})
}

// checkMerge holds what is to hold for any three objects, valid or not.
func checkMerge(t *testing.T, i Images) {
	t.Helper()
	copies := []*unstructured.Unstructured{i.Before.DeepCopy(), i.After.DeepCopy(), i.Live.DeepCopy()}
	untouched, unaltered := i, i
	untouched.Live, unaltered.After = i.After, i.Before
	r := untouched.Restore()
	sameObjects(t, "what the change made", Strip(r.Desired), Strip(i.Before))
	if len(r.Conflicts) > 0 {
		t.Fatalf("conflicts with nobody: %v", r.Conflicts)
	}
	if untouched.Stand() != AtAfter {
		t.Fatal("what the change made does not stand at after")
	}
	sameObjects(t, "a change of nothing", unaltered.Restore().Desired, i.Live)
	for _, force := range []bool{false, true} {
		i.Force = force
		once, again := i.Restore(), i
		again.Live = once.Desired
		sameObjects(t, "twice", again.Restore().Desired, once.Desired)
	}
	i.Drift()
	for n, obj := range []*unstructured.Unstructured{i.Before, i.After, i.Live} {
		sameObjects(t, "an argument", obj, copies[n])
	}
}

func sameObjects(t *testing.T, what string, got, want *unstructured.Unstructured) {
	t.Helper()
	if x, y := line(got), line(want); x != y {
		t.Fatalf("%s: got %s, want %s", what, x, y)
	}
}

// Entries as a server has stored them: of kubectl, of an autoscaler, of a controller
// that writes the status, and of Janus.
const (
	realBefore = `[
{"manager":"kubectl","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}},
{"manager":"autoscaler","operation":"Update","apiVersion":"autoscaling/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"},
{"manager":"kube-controller-manager","operation":"Update","apiVersion":"apps/v1","time":"2026-01-02T03:04:06Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:deployment.kubernetes.io/revision":{}}},"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Available\"}":{".":{},"f:type":{}}}}},"subresource":"status"},
{"manager":"old","operation":"Update","apiVersion":"apps/v1beta1","time":"2026-01-02T03:04:04Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/x\"":{}}}}}]`
	realLive = `[
{"manager":"kubectl","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:selector":{}}}},
{"manager":"janus","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-02T04:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{}}}}}}}},
{"manager":"ancient-changes","operation":"Update","apiVersion":"apps/v1","time":"2026-01-02T04:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}},
{"manager":"before-first-apply","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:a":{}}}},
{"manager":"person","operation":"Update","apiVersion":"apps/v1","time":"2026-01-02T05:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}}}}}]`
	realObject = `{"metadata":{"labels":{"app":"web"},"finalizers":["example.com/x"]},"spec":{"replicas":3,"selector":{},"template":{"spec":{"containers":[{"name":"web","image":"web:2","env":[{"name":"A","value":"b"}],"ports":[{"containerPort":80,"protocol":"TCP"}]}]}}}}`
)

func FuzzManagedFields(f *testing.F) {
	f.Add([]byte(realBefore), []byte(realLive), []byte(realObject), []byte(`{"spec":{"replicas":2}}`))
	f.Add([]byte(realLive), []byte(realBefore), []byte(`{"spec":{"replicas":2}}`), []byte(realObject))
	f.Add([]byte(`[{"manager":"x","fieldsV1":{"k:1":{}}}]`), []byte(`[{"fieldsV1":null},{"operation":"Apply"}]`), []byte(realObject), []byte(`{}`))
	f.Fuzz(func(t *testing.T, had, has, object, other []byte) {
		before, after, live := fuzzed(object), fuzzed(other), fuzzed(object)
		var was, is []metav1.ManagedFieldsEntry
		if before == nil || after == nil || json.Unmarshal(had, &was) != nil || json.Unmarshal(has, &is) != nil {
			return
		}
		for n := range was {
			if isJanus(was[n].Manager) { // It is of one change, which was still to come.
				was[n].Manager = "other"
			}
		}
		before.SetManagedFields(was)
		live.SetManagedFields(is)
		for _, step := range []Images{
			{Before: before, After: after, Live: live, Ours: isJanus},
			{Before: withValues(before, after), After: live, Live: live, Ours: isJanus},
			{After: after, Live: live, Ours: isJanus},
		} {
			checkOwners(t, step)
		}
	})
}

// withValues is an object with the fields of another and its own owners.
func withValues(obj, values *unstructured.Unstructured) *unstructured.Unstructured {
	out := values.DeepCopy()
	out.SetManagedFields(obj.GetManagedFields())
	return out
}

func checkOwners(t *testing.T, i Images) {
	t.Helper()
	_, errBefore := entriesOf(i.orEmpty(i.Before))
	is, errLive := entriesOf(i.Live)
	unreadable := errBefore != nil || errLive != nil
	if i.Before != nil {
		list, _, err := i.RestoreOwners()
		if (err != nil) != unreadable {
			t.Fatalf("RestoreOwners: %v, unreadable %t", err, unreadable)
		}
		checkEntries(t, "RestoreOwners", is, list, i, err)
	}
	list, changed, err := i.HandOver(Hands{Own: "marks", Passing: isJanus, Left: "default"})
	if (err != nil) != unreadable {
		t.Fatalf("HandOver: %v, unreadable %t", err, unreadable)
	}
	if changed || err != nil {
		checkEntries(t, "HandOver", is, list, i, err)
	} else if Owned(i.Live, isJanus) {
		t.Fatal("HandOver leaves ours")
	}
	if _, err := i.Taken(); (err != nil) != (errBefore != nil) {
		t.Fatalf("Taken: %v", err)
	}
}

// checkEntries: nothing of ours is in what is to be stored, others keep what they
// own and is there, and it comes back from JSON as it is.
func checkEntries(t *testing.T, what string, had entries, list []metav1.ManagedFieldsEntry, i Images, err error) {
	t.Helper()
	if err != nil {
		return
	}
	stored := &unstructured.Unstructured{Object: map[string]any{}}
	stored.SetManagedFields(list)
	kept, err := entriesOf(stored)
	if err != nil {
		t.Fatalf("%s gives what cannot be read: %v", what, err)
	}
	for _, e := range had {
		if i.Ours(e.Manager) || e.Manager == ancientChanges || e.Manager == beforeFirstApply {
			continue
		}
		e.set.Iterate(func(p fieldpath.Path) {
			same := func(k entry) bool { return k.owner == e.owner && k.set.Has(p) }
			if exists(i.Live.Object, p) && !slices.ContainsFunc(kept, same) {
				t.Fatalf("%s takes %s from %s", what, p, e.Manager)
			}
		})
	}
	if Owned(stored, i.Ours) {
		t.Fatalf("%s leaves ours: %v", what, list)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var back []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(text, &back); err != nil || len(list) > 0 && !equality.Semantic.DeepEqual(back, list) {
		t.Fatalf("%s: %v comes back as %v, %v", what, list, back, err)
	}
}

// FuzzMergePatch: the patch from one object to another makes the one the other, but
// for nulls, which it cannot set.
func FuzzMergePatch(f *testing.F) {
	f.Add([]byte(`{"a":1,"m":{"b":[1,{"c":2}],"gone":{}}}`), []byte(`{"a":"1","m":{"b":[1,{"c":3}],"new":{"deep":{}}}}`))
	f.Add([]byte(`{"a":null,"b":{"c":null}}`), []byte(`{"a":{"b":{}},"b":{"c":{}}}`))
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a":[{"b":1}]}`))
	f.Add([]byte(`{"":{"":{"":1}}}`), []byte(`{"":{"":{}}}`))
	f.Add([]byte(`{"n":9007199254740993}`), []byte(`{"n":9007199254740992}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		from, to := objectOf(a), objectOf(b)
		if from == nil || to == nil {
			return
		}
		was, is := asJSON(from), asJSON(to)
		patch := MergePatch(from, to)
		if got := asJSON(ApplyMergePatch(from, patch)); !setsNullIn(to) && got != is {
			t.Fatalf("%s and the patch %s give %s, want %s", was, asJSON(patch), got, is)
		}
		if len(MergePatch(to, to)) > 0 {
			t.Fatalf("the patch of nothing to %s", is)
		}
		if asJSON(from) != was || asJSON(to) != is {
			t.Fatal("an argument has changed")
		}
	})
}

func objectOf(data []byte) map[string]any {
	var out map[string]any
	if utiljson.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

func setsNullIn(v any) bool {
	object, _ := v.(map[string]any)
	for _, inner := range object {
		if inner == nil || setsNullIn(inner) {
			return true
		}
	}
	return false
}

func asJSON(object map[string]any) string {
	out, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(out)
}

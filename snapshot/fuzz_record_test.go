package snapshot

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"janus.io/janus/api/v1alpha1"
)

// hostile are JSON texts that decoders stumble over.
var hostile = []string{
	``, `null`, `[]`, `0`, `"x"`, `{`, `{}`, `{"format":1}`, `{"format":1,"item":-1}`, `{"format":1.0}`, `{"format":1e0,"item":9e99}`,
	`{"format":1,"before":null,"unchanged":true}`, `{"format":1,"before":{},"afterPatch":{"a":1}}`,
	`{"format":1,"before":{"a":1},"afterPatch":{"a":null}}`, `{"format":1,"before":{"a":1},"unchanged":true}`,
	`{"format":1,"before":{"a":{"b":1}},"afterPatch":{"a":{"b":null,"c":[null]}}}`,
	`{"format":1,"before":{"a":1},"after":{"a":2},"afterPatch":{"a":3}}`, `{"format":1,"after":{"metadata":null}}`,
	`{"format":1,"before":{"metadata":{"uid":7,"managedFields":"x"}}}`, `{"format":1,"format":2,"item":1,"item":2}`,
	`{"format":1,"before":{"n":12345678901234567890,"f":1e308,"z":-0.0,"e":1E+2}}`, `{"format":1,"target":{"gvk":7}}`,
	`{"format":1,"before":{"\ud800":"\u0000"}}`, `{"FORMAT":1,"Before":{"a":1}}`,
	`{"format":1,"before":{"a":1e400}}`,
}

func FuzzDecode(f *testing.F) {
	for _, text := range hostile {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"format":1,"before":` + strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200) + `}`))
	for _, r := range recordCases() {
		f.Add(encode(f, r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			if !errors.Is(err, errNotARecord) {
				t.Fatalf("another error than that it is no record: %v", err)
			}
			return
		}
		r = decode(t, encode(t, r)) // -0.0 is 0 from now on, as it is to the API server.
		again := decode(t, encode(t, r))
		if string(encode(t, again)) != string(encode(t, r)) || jsonOf(again.Before) != jsonOf(r.Before) || jsonOf(again.After) != jsonOf(r.After) {
			t.Fatalf("%s comes back as %s", encode(t, r), encode(t, again))
		}
		if r.Item < 0 || r.Before != nil && len(r.Before.Object) == 0 || r.After != nil && len(r.After.Object) == 0 {
			t.Fatalf("a record that cannot be: %s", encode(t, r))
		}
	})
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
		was, is := jsonOf(from), jsonOf(to)
		patch := MergePatch(from, to)
		if got := jsonOf(patched(from, patch)); !setsNullIn(to) && got != is {
			t.Fatalf("%s and the patch %s give %s, want %s", was, jsonOf(patch), got, is)
		}
		if len(MergePatch(to, to)) > 0 {
			t.Fatalf("the patch of nothing to %s", is)
		}
		if jsonOf(from) != was || jsonOf(to) != is {
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

func jsonOf(v any) string {
	if obj, ok := v.(*unstructured.Unstructured); ok && obj != nil {
		v = obj.Object // Its own encoding demands a kind.
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
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

// FuzzNames: whatever a Transaction and a target are called, what is stored for them
// has names that the API server takes, and nobody is directed to another object.
func FuzzNames(f *testing.F) {
	f.Add("release", "ConfigMap", "shop", "web", "ConfigMap/release-rollback-2", "2.abc", 3)
	f.Add(strings.Repeat("a.b-", 63)+"c", "Kind", strings.Repeat("n", 63), strings.Repeat("ä", 126), "Secret/release-rollback-0", "-1", 10000)
	f.Add("a-rollback-2", "", "", "..", "ConfigMap/a-rollback-2-rollback-02", "99999999999999999999.x", 2)
	f.Add("x", "Kind", "", "a.o2", "ConfigMap/x-rollback-+2", "10001.", -1)
	f.Add("x", "Kind", "", "a.2", "/x-rollback/", ".", 0)
	f.Fuzz(func(t *testing.T, transaction, kindName, namespace, name, listedAs, mark string, n int) {
		item := n & 0xfff
		number := item%maxObjects + 1
		key := numbered(Key(item, refTo(schema.GroupVersionKind{Kind: kindName}, namespace, name)), number)
		for _, part := range []int{1, 2, maxObjects} {
			if wrong := validation.IsConfigMapKey(partKey(key, part)); len(wrong) > 0 {
				t.Fatalf("key %q: %v", partKey(key, part), wrong)
			}
		}
		if !strings.HasPrefix(key, jsonOf(item)+"_") {
			t.Fatalf("key %q does not tell item %d", key, item)
		}
		if number > 1 && beginsIn(key) != number {
			t.Fatalf("key %q tells object %d, want %d", key, beginsIn(key), number)
		}
		if last := lastOf(mark, number); last < number || last > maxObjects {
			t.Fatalf("mark %q names %d as the last after %d", mark, last, number)
		}
		for _, p := range listed(transaction, &v1alpha1.RollbackRef{Objects: []string{listedAs}}) {
			if p.number < 1 || !slices.Contains(kinds, p.kind) || p.entry(transaction) != listedAs {
				t.Fatalf("%q is taken for %v", listedAs, p)
			}
		}
		if len(validation.IsDNS1123Subdomain(transaction)) > 0 {
			return
		}
		if wrong := validation.IsDNS1123Subdomain(objectName(transaction, number)); len(wrong) > 0 {
			t.Fatalf("object %q: %v", objectName(transaction, number), wrong)
		}
		for label, value := range Labels(transaction) {
			if wrong := append(validation.IsQualifiedName(label), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
				t.Fatalf("label %s=%q: %v", label, value, wrong)
			}
		}
	})
}

// FuzzReown: whatever the owner references and the managedFields are, references
// move, or go, with those who own them.
func FuzzReown(f *testing.F) {
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"uid":"u-1","kind":"A"},{"uid":"u-2"}],"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",
		"fieldsV1":{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"u-1\"}":{},"k:{\"uid\":\"u-2\"}":{"f:kind":{}}}}}}]}}`), "u-1", "u-9")
	f.Add([]byte(`{"metadata":{"ownerReferences":[null,7,{"uid":7},{}]}}`), "", "x")
	f.Add([]byte(`{"metadata":{"ownerReferences":"x","managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"v:1":{},"i:0":{},"k:{\"uid\":1}":{}}}}}]}}`), "1", "")
	f.Add([]byte(`{"metadata":null}`), "a", "b")
	f.Add([]byte(`{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{}":{}}}}}]}}`), "a", "b")
	f.Fuzz(func(t *testing.T, object []byte, old, fresh string) {
		content := objectOf(object)
		if content == nil {
			return
		}
		if meta, there := content["metadata"]; there && meta == nil {
			delete(content, "metadata")
		}
		obj := &unstructured.Unstructured{Object: content}
		was := line(obj)
		moved, err := Reown(obj, func(uid types.UID) types.UID {
			if string(uid) == old {
				return types.UID(fresh)
			}
			return uid
		})
		if line(obj) != was {
			t.Fatal("the argument has changed")
		}
		if err != nil {
			return
		}
		for _, r := range moved.GetOwnerReferences() {
			if string(r.UID) == old && old != fresh {
				t.Fatalf("a reference stays: %s", line(moved))
			}
		}
		if _, err := entriesOf(moved); err != nil {
			t.Fatalf("owners that cannot be read: %v", err)
		}
	})
}

package snapshot

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	api "janus.io/janus/api/v1alpha1"
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
		for _, p := range listed(transaction, &api.RollbackRef{Objects: []string{listedAs}}) {
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

package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/target"
)

func refTo(gvk schema.GroupVersionKind, namespace, name string) target.Ref {
	return target.Ref{GVK: gvk, GVR: gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"), Namespace: namespace, Name: name}
}

var (
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secretKind    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	widgetKind    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

func image(gvk schema.GroupVersionKind, content map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a", "uid": "u-1", "resourceVersion": "17", "labels": map[string]any{"app": "a"},
			"managedFields": []any{map[string]any{"manager": "kubectl"}}},
	}}
	obj.SetGroupVersionKind(gvk)
	for k, v := range content {
		obj.Object[k] = v
	}
	return obj
}

func encode(t testing.TB, r Record) []byte {
	t.Helper()
	data, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode(t testing.TB, data []byte) Record {
	t.Helper()
	r, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// records are cases of Encode, by name.
func recordCases() map[string]Record {
	ref := refTo(widgetKind, "shop", "a")
	before := image(widgetKind, map[string]any{
		"spec":   map[string]any{"replicas": int64(3), "big": int64(math.MaxInt64), "ratio": 0.5, "nothing": nil, "html": "<&>", "gone": "x"},
		"status": map[string]any{"phase": "Ready"},
	})
	after := fieldmerge.Strip(before)
	_ = unstructured.SetNestedField(after.Object, int64(5), "spec", "replicas")
	unstructured.RemoveNestedField(after.Object, "spec", "gone")
	withNull := after.DeepCopy()
	withNull.Object["spec"].(map[string]any)["fresh"] = nil
	return map[string]Record{
		"absent":                      {Item: 0, Type: "Create", Target: ref, After: after},
		"delete":                      {Item: 1, Type: "Delete", Target: ref, Before: before},
		"update":                      {Item: 2, Type: "Update", Target: ref, Before: before, After: after},
		"update-to-explicit-null":     {Item: 3, Type: "Update", Target: ref, Before: before, After: withNull},
		"update-that-changes-nothing": {Item: 4, Type: "Update", Target: ref, Before: fieldmerge.Strip(before), After: fieldmerge.Strip(before)},
		"neither":                     {Item: 5, Type: "Delete", Target: ref},
	}
}

func TestEncodeIsWhatItWas(t *testing.T) {
	t.Parallel()
	for name, r := range recordCases() {
		t.Run(name, func(t *testing.T) {
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, encode(t, r), "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			golden(t, filepath.Join("encode", name+".golden.json"), pretty.Bytes())
		})
	}
}

func TestDecodeGivesBackExactlyWhatWasEncoded(t *testing.T) {
	t.Parallel()
	for name, r := range recordCases() {
		t.Run(name, func(t *testing.T) {
			first := encode(t, r)
			if got := decode(t, first); !reflect.DeepEqual(got, r) {
				t.Errorf("got  %#v\nwant %#v", got, r)
			}
			for range 20 {
				if again := encode(t, decode(t, first)); !bytes.Equal(again, first) {
					t.Fatalf("encoded again:\n%s\nfirst:\n%s", again, first)
				}
			}
		})
	}
}

func TestExplicitNullsAndIntegersSurvive(t *testing.T) {
	t.Parallel()
	r := decode(t, encode(t, recordCases()["update-to-explicit-null"]))
	for _, obj := range []*unstructured.Unstructured{r.Before, r.After} {
		spec := obj.Object["spec"].(map[string]any)
		if v, there := spec["nothing"]; !there || v != nil {
			t.Errorf("the null is %v, there: %t", v, there)
		}
		if v := spec["big"]; v != int64(math.MaxInt64) {
			t.Errorf("the integer is %T %v", v, v)
		}
		if v := spec["ratio"]; v != 0.5 {
			t.Errorf("the fraction is %T %v", v, v)
		}
	}
	if v, there := r.After.Object["spec"].(map[string]any)["fresh"]; !there || v != nil {
		t.Errorf("the new null is %v, there: %t", v, there)
	}
}

func TestAfterIsStoredAsThePatchItIs(t *testing.T) {
	t.Parallel()
	r := recordCases()["update"]
	r.Before.Object["spec"].(map[string]any)["bulk"] = strings.Repeat("x", 100_000)
	r.After.Object["spec"].(map[string]any)["bulk"] = strings.Repeat("x", 100_000)
	if size := len(encode(t, r)); size > 102_000 {
		t.Errorf("%d bytes for an object of 100,000 and a small change", size)
	}
}

func TestEmptyImageIsNotEncoded(t *testing.T) {
	t.Parallel()
	for _, r := range []Record{{Before: &unstructured.Unstructured{}}, {After: &unstructured.Unstructured{}}} {
		if _, err := Encode(r); err == nil {
			t.Error("no error")
		}
	}
}

func TestDecodeRefusesWhatEncodeNeverWrites(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `{`, `null`, `[]`, `{}`, `{"format":2}`, `{"format":1,"item":-1}`, `{"format":1,"item":"canary"}`,
		`{"format":1,"after":{"a":1},"afterPatch":{"a":2},"before":{"a":1}}`,
		`{"format":1,"afterPatch":{"a":2}}`, `{"format":1,"unchanged":true}`,
		`{"format":1,"before":{"a":1},"afterPatch":{"a":null}}`, `{"format":1} trailing`,
	} {
		_, err := Decode([]byte(text))
		if err == nil {
			t.Errorf("%s was decoded", text)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("the error quotes the record: %v", err)
		}
	}
}

func TestDigestIsSHA256(t *testing.T) {
	t.Parallel()
	if got, want := Digest([]byte("abc")), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestKeyIsLegalUniqueAndLeavesRoom(t *testing.T) {
	t.Parallel()
	legal := regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	long := refTo(role, strings.Repeat("n", 63), strings.Repeat("x", 253))
	cases := []struct {
		item int
		ref  target.Ref
		want string
	}{
		{0, refTo(configMapKind, "shop", "web"), "0_ConfigMap_shop_web"},
		{12, refTo(role, "", "system:foo"), "12_ClusterRole__system-foo"},
		{3, refTo(role, "", "A_b:c"), "3_ClusterRole__A_b-c"},
		{4, refTo(role, "", "ä/%"), "4_ClusterRole__---"},
		{1, long, ("1_ClusterRole_" + strings.Repeat("n", 63) + "_" + strings.Repeat("x", 253))[:maxKey]},
	}
	seen := map[string]bool{}
	for _, c := range cases {
		got := Key(c.item, c.ref)
		if got != c.want || !legal.MatchString(got) || seen[got] {
			t.Errorf("Key(%d, %s) = %s, want %s", c.item, c.ref, got, c.want)
		}
		seen[got] = true
		if longest := partKey(numbered(got, maxObjects), maxObjects); len(validation.IsConfigMapKey(longest)) > 0 {
			t.Errorf("%s with all suffixes is not a key", longest)
		}
	}
	if Key(998, long) == Key(999, long) {
		t.Error("two items have one key")
	}
}

// FuzzAfter checks that whatever After is, it comes back.
func FuzzAfter(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1,"c":null}}`), []byte(`{"a":{"b":null}}`))
	f.Add([]byte(`{"a":[1,null]}`), []byte(`{"a":{"b":{"c":null}}}`))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		r, err := Decode([]byte(fmt.Sprintf(`{"format":1,"before":%s,"after":%s}`, before, after)))
		if err != nil || r.After == nil {
			return
		}
		want, err := json.Marshal(r.After.Object)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(decode(t, encode(t, r)).After.Object)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %s (%v), want %s", got, err, want)
		}
	})
}

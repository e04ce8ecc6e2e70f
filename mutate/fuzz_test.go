package mutate

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/target"
)

func objectOf(data []byte) map[string]any {
	var out map[string]any
	if utiljson.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

// FuzzPatches: the patch by which values are restored makes the live object what is
// wanted, by the library with which the API server applies patches.
func FuzzPatches(f *testing.F) {
	f.Add([]byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"a":1,"b":[null]}}`), []byte(`{"metadata":{},"spec":{"a":null,"b":[1]}}`))
	f.Add([]byte(`{"spec":{"a":{"b":null}}}`), []byte(`{"spec":{"a":{"c":null}},"status":null}`))
	f.Add([]byte(`{"a/b":1,"~":{"/":2},"~1":3}`), []byte(`{"a~b":1,"~":{"/":null},"":{}}`))
	f.Add([]byte(`{"a":9007199254740993}`), []byte(`{"a":{"b":{"c":{}}}}`))
	f.Add([]byte(`{"a":{"x":1}}`), []byte(`{"a":{"x":{"y":null}}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		from, to := objectOf(a), objectOf(b)
		if from == nil || to == nil {
			return
		}
		identify(from)
		identify(to)
		live, wanted := &unstructured.Unstructured{Object: from}, &unstructured.Unstructured{Object: to}
		document, err := json.Marshal(from)
		if err != nil {
			t.Fatal(err)
		}
		if !setsNull(from, to) {
			body, err := conditional(fieldmerge.MergePatch(from, to), live)
			if err != nil {
				t.Fatal(err)
			}
			got, err := jsonpatch.MergePatch(document, body)
			checkPatched(t, "merge patch "+string(body), got, err, to)
		}
		body, err := json.Marshal(valueOperations(live, wanted))
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		got, err := patch.Apply(document)
		checkPatched(t, "JSON patch "+string(body), got, err, to)
	})
}

// identify makes an object of JSON that an API server may have given.
func identify(object map[string]any) {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	meta["uid"], meta["resourceVersion"] = "u-1", "17"
}

func checkPatched(t *testing.T, what string, got []byte, err error, want map[string]any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	is, text := objectOf(got), jsonOf(t, want)
	if jsonOf(t, is) != text {
		t.Fatalf("%s gives %s, want %s", what, got, text)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), ":-0,", ":0,")
}

// FuzzBody: whatever the content is, what is sent is for the target and no other
// object, under the condition that is to hold, and the content stays as it is.
func FuzzBody(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"metadata":null}`, `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":[]}}`, `{"metadata":{"annotations":{"a":7}}}`,
		`{"metadata":{"labels":null}}`, `{"metadata":{"labels":[]}}`, `{"metadata":{"labels":{"a":7}},"spec":{"template":{"metadata":{"labels":[]}}}}`,
		`{"metadata":{"name":"other","namespace":"other","uid":"x","resourceVersion":"9"},"kind":"Other","apiVersion":"x/v9"}`,
		`{"stringData":{"a":"b"},"data":null}`, `{"stringData":{"a":7},"data":{"a":"eA=="}}`, `{"stringData":[],"data":"x"}`, `{"stringData":null}`, `{"stringData":{"a":"\u0000ä"},"data":{"b":7}}`,
	} {
		for _, kind := range []string{"ConfigMap", "Secret", "ReplicationController"} {
			f.Add([]byte(text), kind, "shop", "u-1")
			f.Add([]byte(text), kind, "", "")
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, kind, namespace, uid string) {
		content := objectOf(data)
		if kind == "" || content == nil || badMetadata(content) || !utf8.ValidString(kind+namespace+uid) {
			return // Validation lets neither pass.
		}
		was := jsonOf(t, content)
		c := Change{Ref: target.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: kind}, Namespace: namespace, Name: "web"}, Content: content, Names: Names{Marker: "m", Transaction: types.NamespacedName{Namespace: "n", Name: "t"}}}
		body := c.body(Version{UID: types.UID(uid), ResourceVersion: "17"})
		if body.GetKind() != kind || body.GetAPIVersion() != "v1" || body.GetName() != "web" || namespace != "" && body.GetNamespace() != namespace {
			t.Fatalf("%s is sent for %s", jsonOf(t, body.Object), c.Ref)
		}
		if uid != "" && (string(body.GetUID()) != uid || body.GetResourceVersion() != "17") {
			t.Fatalf("%s has no condition", jsonOf(t, body.Object))
		}
		c.Names.mark(body)
		meta := body.Object["metadata"].(map[string]any)
		annotations, ok := meta["annotations"].(map[string]any)
		if ok && (annotations[MarkerAnnotation] != "m" || annotations[api.TransactionKey] != "n/t") {
			t.Fatalf("%s has no mark", jsonOf(t, body.Object))
		}
		if labels, ok := meta["labels"].(map[string]any); ok && labels[api.TransactionKey] != "t" {
			t.Fatalf("%s has no label", jsonOf(t, body.Object))
		}
		if jsonOf(t, content) != was {
			t.Fatal("the content has changed")
		}
	})
}

func badMetadata(content map[string]any) bool {
	_, ok := content["metadata"].(map[string]any)
	return !ok && content["metadata"] != nil
}

// FuzzContenders: the managers that an apply meets come out of the text of the API
// server, whatever they call themselves.
func FuzzContenders(f *testing.F) {
	for _, manager := range []string{"kubectl", `a "quoted" one`, `\`, "\x00\xff\n", `conflict with "x" using`, "janus", "janus-0123abcd-7", "janus-0123abcd-x", "", "ä\u202e"} {
		f.Add(manager, ".spec.replicas", "")
	}
	f.Add("x", `.metadata.labels[="a"]`, `conflict with "unfinished`)
	f.Fuzz(func(t *testing.T, manager, field, text string) {
		if text == "" {
			text = "conflict with " + strconv.Quote(manager) + " using apps/v1 at 2026-01-02T03:04:05Z"
			if got := managerIn(text); got != manager {
				t.Fatalf("%q gives %q", text, got)
			}
		}
		status := metav1.Status{Code: 409, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: text, Field: field}}}}
		c := Change{Ref: target.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Name: "web"}}
		for _, found := range c.contenders(&apierrors.StatusError{ErrStatus: status}) {
			if len(found.Managers) != 1 || !reflect.DeepEqual(found.Managers, printable(found.Managers)) {
				t.Fatalf("%q is shown", found.Managers)
			}
		}
	})
}

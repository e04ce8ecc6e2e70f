package random

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/content"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// randomSource is where the content of a change is, if it is not in the Transaction. Contents in
// the same kind of object share one.
type randomSource struct {
	kind string // ConfigMap or Secret
	// form is json, yaml or gzip.
	form string
	// pinned is set where the spec has the digest.
	pinned bool
	// lost is what another client does to the key once the change is made: nothing, changed or
	// removed.
	lost string
}

// drawSources moves the contents of some changes into sources, in one of four cases. It comes
// last, so that a case is the same but for that.
func (c *randomCase) drawSources(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "sources") > 0 {
		return
	}
	c.late = rapid.IntRange(0, 3).Draw(t, "late") == 0
	for i := range c.items {
		if c.items[i].kind == api.Delete || rapid.IntRange(0, 3).Draw(t, "inline") == 0 {
			continue
		}
		c.items[i].from = &randomSource{
			kind: rapid.SampledFrom([]string{"ConfigMap", "ConfigMap", "Secret"}).Draw(t, "source"),
			form: rapid.SampledFrom([]string{"json", "yaml", "gzip"}).Draw(t, "form"), pinned: rapid.Bool().Draw(t, "pinned"),
			lost: rapid.SampledFrom([]string{"", "changed", "removed"}).Draw(t, "lost"),
		}
	}
}

// written is the content of an item as its source holds it.
func (c *randomCase) written(item int) []byte {
	o := c.objects[c.items[item].object]
	data, err := json.Marshal(o.content(c.items[item].values, c.items[item].kind != api.Patch))
	if err == nil && c.items[item].from.form == "yaml" {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		panic(err)
	}
	if c.items[item].from.form == "gzip" {
		return packed(data)
	}
	return data
}

func packed(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func keyOf(item int) string { return fmt.Sprint("item-", item) }

// contentFrom is that of the change of an item.
func (c *randomCase) contentFrom(item int) map[string]any {
	from := c.items[item].from
	ref := strings.ToLower(from.kind[:1]) + from.kind[1:] + "KeyRef"
	out := map[string]any{ref: map[string]any{"name": c.source, "key": keyOf(item)}}
	if from.pinned {
		out["digest"] = content.Digest(c.written(item))
	}
	return out
}

// sources are the objects that hold the contents.
func (c *randomCase) sources() []*unstructured.Unstructured {
	data := map[string]map[string]any{}
	for i, item := range c.items {
		if item.from == nil {
			continue
		}
		if data[item.from.kind] == nil {
			data[item.from.kind] = map[string]any{}
		}
		data[item.from.kind][keyOf(i)] = base64.StdEncoding.EncodeToString(c.written(i))
	}
	var out []*unstructured.Unstructured
	for kind, field := range map[string]string{"ConfigMap": "binaryData", "Secret": "data"} {
		if data[kind] != nil {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, field: data[kind]}}
			u.SetName(c.source)
			out = append(out, u)
		}
	}
	return out
}

// provide makes the sources.
func (w *world) provide(c *randomCase) {
	for _, u := range c.sources() {
		client, err := w.For(u.GroupVersionKind(), w.Namespace)
		if err == nil {
			_, err = client.Create(w.Context(), u, metav1.CreateOptions{FieldManager: "m0"})
		}
		if err != nil {
			w.t.now.Fatal(err)
		}
	}
}

// carry submits the Transaction of a case, provides its sources before or when it waits for
// them, and returns its end.
func (w *world) carry(name string, c *randomCase) *api.Transaction {
	spec, needed := c.spec("refused-"+name), len(c.sources()) > 0
	if !c.late {
		w.provide(c)
	}
	w.Submit(name, spec)
	if c.late && needed {
		waiting := w.Await(name, "waiting for its contents", func(t *api.Transaction) bool {
			return strings.Contains(harness.Describe(t), errclass.ContentMissing)
		})
		if waiting.Status.Phase != api.PhasePending {
			w.t.now.Fatalf("it is %s without its contents", waiting.Status.Phase)
		}
		w.provide(c)
	}
	return w.Ended(name)
}

// lose lets another client change or remove the contents of the changes before an item: they are
// made, and neither they nor their rollback need them.
func (r *run) lose(before int) {
	for i := range r.items[:min(before, len(r.items))] {
		from := r.items[i].from
		if from == nil || from.lost == "" || r.lost[i] {
			continue
		}
		r.lost[i] = true
		var value any
		if from.lost == "changed" {
			value = base64.StdEncoding.EncodeToString([]byte(`{"metadata":{"labels":{"lost":"yes"}}}`))
		}
		field := "binaryData"
		if from.kind == "Secret" {
			field = "data"
		}
		client, err := r.For(schema.FromAPIVersionAndKind("v1", from.kind), r.Namespace)
		if err == nil {
			patch := encoded(map[string]any{field: map[string]any{keyOf(i): value}})
			_, err = client.Patch(r.Context(), r.source, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
		}
		if err != nil {
			r.failed = err
		}
	}
}

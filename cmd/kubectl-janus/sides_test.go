package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

// object reads YAML.
func object(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	v, err := decode(raw)
	require.NoError(t, err)
	return v
}

func TestPathsAreTakenApart(t *testing.T) {
	for path, c := range map[string]struct {
		known string
		want  []element
	}{
		".spec.replicas":     {"", []element{{field: "spec"}, {field: "replicas"}}},
		".data.app.conf":     {"", []element{{field: "data"}, {field: "app.conf"}}},
		".spec.a.b.c":        {"spec: {a.b: {c: 1}}", []element{{field: "spec"}, {field: "a.b"}, {field: "c"}}},
		".spec.a.b":          {"spec: {a: {b: 1}, x: 1}", []element{{field: "spec"}, {field: "a"}, {field: "b"}}},
		".metadata.labels.x": {"metadata: {labels: {x.y: 1}}", []element{{field: "metadata"}, {field: "labels"}, {field: "x"}}},
		`.spec.containers[name="a]b"].image`: {"", []element{
			{field: "spec"}, {field: "containers"}, {item: `name="a]b"`}, {field: "image"},
		}},
		`.ports[containerPort=80,protocol="TCP"].a.b`: {"ports: [{containerPort: 80, protocol: TCP, a.b: 1}]", []element{
			{field: "ports"}, {item: `containerPort=80,protocol="TCP"`}, {field: "a.b"},
		}},
		`.metadata.finalizers[="x.io/y"]`: {"", []element{{field: "metadata"}, {field: "finalizers"}, {item: `="x.io/y"`}}},
		`.spec.broken["`:                  {"", []element{{field: "spec"}, {field: "broken"}, {item: `"`}}},
	} {
		t.Run(path, func(t *testing.T) { assert.Equal(t, c.want, elementsOf(path, object(t, c.known))) })
	}
}

func TestTheSidesOfAnItem(t *testing.T) {
	long := strings.Repeat("long line\\n", 40)
	cut := func(text string) string { return `"` + text[:190] + "…" }
	for name, c := range map[string]struct {
		effect        api.PlanEffect
		fields        []api.FieldChange
		more          int64
		live, content string
		before, after string
		vague         []string
		whole         bool
	}{
		"a value": {
			effect: api.EffectChange, fields: []api.FieldChange{{Field: ".data.a.b", Before: `"1"`, After: `"2"`}},
			before: "data: {a.b: \"1\"}", after: "data: {a.b: \"2\"}",
		},
		"what is new, and what goes": {
			effect: api.EffectChange, fields: []api.FieldChange{{Field: ".spec.new", After: "3"}, {Field: ".spec.old", Before: "null"}},
			before: "spec: {old: null}", after: "spec: {new: 3}",
		},
		"items of lists": {
			effect: api.EffectChange, fields: []api.FieldChange{
				{Field: `.spec.c[name="a"].image`, Before: `"a:1"`, After: `"a:2"`},
				{Field: `.spec.c[name="a"].tty`, After: "true"},
				{Field: `.spec.c[name="b"].image`, Before: `"b:1"`, After: `"b:2"`},
				{Field: `.metadata.finalizers[="x/y"]`, After: `"x/y"`},
			},
			before: "spec: {c: [{name: a, image: \"a:1\"}, {name: b, image: \"b:1\"}]}",
			after:  "{spec: {c: [{name: a, image: \"a:2\", tty: true}, {name: b, image: \"b:2\"}]}, metadata: {finalizers: [x/y]}}",
		},
		"what is long is looked up": {
			effect: api.EffectChange, fields: []api.FieldChange{{Field: ".data.conf", Before: cut(long), After: cut(long)}},
			live: "data: {conf: \"" + long + "before\"}", content: "data: {conf: \"" + long + "after\"}",
			before: "data: {conf: \"" + long + "before\"}", after: "data: {conf: \"" + long + "after\"}",
		},
		"what cannot be looked up differs all the same": {
			effect: api.EffectChange, fields: []api.FieldChange{{Field: ".data.conf", Before: cut("x" + long), After: cut("x" + long)}},
			live: "data: {conf: changed since}", content: "data: {}",
			before: "data: {conf: '" + cut("x"+long) + " (before)'}", after: "data: {conf: '" + cut("x"+long) + " (after)'}",
			vague: []string{".data.conf"},
		},
		"a mask stays, whatever is known": {
			effect: api.EffectChange, fields: []api.FieldChange{{Field: ".data.key", Before: "*** (before)", After: "*** (after)"}},
			live: "data: {key: c2VjcmV0}", content: "data: {key: aGlkZGVu}",
			before: "data: {key: \"*** (before)\"}", after: "data: {key: \"*** (after)\"}",
		},
		"a creation": {
			effect: api.EffectCreate, fields: []api.FieldChange{{Field: ".data.a", After: `"1"`}}, after: "data: {a: \"1\"}",
		},
		"a creation of more than a plan lists": {
			effect: api.EffectCreate, more: 7, fields: []api.FieldChange{{Field: ".data.a", After: `"1"`}, {Field: ".metadata.labels.by", After: `"the server"`}},
			content: "{metadata: {name: y, labels: {x: z}}, data: {a: \"1\", b: \"2\"}}",
			after:   "{metadata: {labels: {x: z, by: the server}}, data: {a: \"1\", b: \"2\"}}",
			whole:   true,
		},
		"a creation of more, all of it masked": {
			effect: api.EffectCreate, more: 7, fields: []api.FieldChange{{Field: ".data.a", After: "*** (after)"}},
			content: "data: {a: aGlkZGVu, b: aGlkZGVu}", after: "data: {a: \"*** (after)\"}",
		},
		"a change of more than a plan lists": {
			effect: api.EffectChange, more: 7, fields: []api.FieldChange{{Field: ".data.a", Before: `"0"`, After: `"1"`}},
			content: "data: {a: \"1\", b: \"2\"}", before: "data: {a: \"0\"}", after: "data: {a: \"1\"}",
		},
		"a deletion": {effect: api.EffectDelete, before: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			item := &api.Item{Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "x"}, Plan: &api.Plan{Effect: c.effect, Fields: c.fields, More: c.more}}
			s := sidesOf(item, object(t, c.live), object(t, c.content))
			assert.Equal(t, c.vague, s.vague)
			assert.Equal(t, c.whole, s.whole)
			for _, side := range []struct {
				got  tree
				want string
			}{{s.live, c.before}, {s.merged, c.after}} {
				text, err := side.got.yaml()
				require.NoError(t, err)
				if side.want == "" {
					assert.Empty(t, text)
					continue
				}
				want, _ := object(t, side.want).(map[string]any)
				metadata, _ := want["metadata"].(map[string]any)
				if metadata == nil {
					metadata = map[string]any{}
				}
				metadata["name"], metadata["namespace"] = "x", "shop"
				want["apiVersion"], want["kind"], want["metadata"] = "v1", "ConfigMap", metadata
				assert.Equal(t, want, object(t, string(text)))
			}
		})
	}
}

func TestFilesAreNamedAsByKubectl(t *testing.T) {
	for want, target := range map[string]api.Target{
		"v1.ConfigMap.shop.x":       {APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "x"},
		"apps.v1.Deployment.shop.x": {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "x"},
		"v1.Namespace..x":           {APIVersion: "v1", Kind: "Namespace", Name: "x"},
	} {
		assert.Equal(t, want, sides{item: &api.Item{Target: target}}.file())
	}
}

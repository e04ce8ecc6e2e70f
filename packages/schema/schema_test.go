package schema_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"janus.io/janus/packages/schema"
)

// definition has one version with a schema of the spec.
func definition(t testing.TB, spec string) *v1.CustomResourceDefinition {
	t.Helper()
	out := &v1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
metadata: {name: buckets.acme.io}
spec:
  group: acme.io
  scope: Namespaced
  names: {kind: Bucket, plural: buckets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: `+spec+`
status: {storedVersions: [v1]}
`), out))
	return out
}

func TestADifferenceIsBreakingIfSomethingMayBeRefusedOrDropped(t *testing.T) {
	for name, c := range map[string]struct{ before, after, breaking, harmless string }{
		"nothing":                   {`{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string, description: "new"}}}`, "", ""},
		"a new field":               {`{type: object}`, `{type: object, properties: {a: {type: string}}}`, "", "v1 spec.a is new"},
		"a new field, required":     {`{type: object}`, `{type: object, required: [a], properties: {a: {type: string}}}`, "v1 spec.a is required now", "v1 spec.a is new"},
		"one with a default":        {`{type: object}`, `{type: object, required: [a], properties: {a: {type: string, default: x}}}`, "", "v1 spec.a is new"},
		"a field that is gone":      {`{type: object, properties: {a: {type: string}}}`, `{type: object}`, "v1 spec.a is gone: its value is dropped", ""},
		"one that is kept unknown":  {`{type: object, properties: {a: {type: string}}}`, `{type: object, x-kubernetes-preserve-unknown-fields: true}`, "", ""},
		"unknown fields":            {`{type: object, x-kubernetes-preserve-unknown-fields: true}`, `{type: object}`, "v1 spec drops unknown fields now", ""},
		"another type":              {`{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: integer}}}`, "v1 spec.a is integer, and was string", ""},
		"a wider type":              {`{type: object, properties: {a: {type: integer}}}`, `{type: object, properties: {a: {x-kubernetes-int-or-string: true}}}`, "", "v1 spec.a is integer or string, and was integer"},
		"fewer values":              {`{type: object, properties: {a: {type: string, enum: [x, w]}}}`, `{type: object, properties: {a: {type: string, enum: [x, z]}}}`, `v1 spec.a does not take "w" any more`, ""},
		"some values":               {`{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string, enum: [x]}}}`, `v1 spec.a takes only some values now`, ""},
		"more values":               {`{type: object, properties: {a: {type: string, enum: [x]}}}`, `{type: object, properties: {a: {type: string, enum: [x, w]}}}`, "", ""},
		"a pattern":                 {`{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string, pattern: ^x}}}`, "v1 spec.a has to match ^x now", ""},
		"a format":                  {`{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string, format: date}}}`, "v1 spec.a has the format date now", ""},
		"a shorter text":            {`{type: object, properties: {a: {type: string, maxLength: 9}}}`, `{type: object, properties: {a: {type: string, maxLength: 8}}}`, "v1 spec.a has at most 8 characters now", ""},
		"more items":                {`{type: object, properties: {a: {type: array, items: {type: string}}}}`, `{type: object, properties: {a: {type: array, minItems: 1, items: {type: string}}}}`, "v1 spec.a has at least 1 items now", ""},
		"a smaller number":          {`{type: object, properties: {a: {type: integer, maximum: 5}}}`, `{type: object, properties: {a: {type: integer, maximum: 5, exclusiveMaximum: true}}}`, "v1 spec.a has the maximum 5 now", ""},
		"a larger number":           {`{type: object, properties: {a: {type: number}}}`, `{type: object, properties: {a: {type: number, minimum: 0.5}}}`, "v1 spec.a has the minimum 0.5 now", ""},
		"a multiple":                {`{type: object, properties: {a: {type: integer}}}`, `{type: object, properties: {a: {type: integer, multipleOf: 2}}}`, "v1 spec.a has to be a multiple of 2 now", ""},
		"no null":                   {`{type: object, properties: {a: {type: string, nullable: true}}}`, `{type: object, properties: {a: {type: string}}}`, "v1 spec.a may not be null any more", ""},
		"a new rule":                {`{type: object}`, `{type: object, x-kubernetes-validations: [{rule: "has(self.a)"}]}`, "v1 spec has a new rule: has(self.a)", ""},
		"an old rule":               {`{type: object, x-kubernetes-validations: [{rule: "true"}]}`, `{type: object}`, "", ""},
		"one of two":                {`{type: object}`, `{type: object, oneOf: [{required: [a]}, {required: [b]}]}`, "v1 spec has another oneOf", ""},
		"other values for keys":     {`{type: object, additionalProperties: {type: string}}`, `{type: object, additionalProperties: {type: integer}}`, "v1 spec[*] is integer, and was string", ""},
		"no other keys":             {`{type: object, additionalProperties: {type: string}}`, `{type: object}`, "v1 spec takes no other keys any more", ""},
		"a field that is a key":     {`{type: object, properties: {a: {type: string}}}`, `{type: object, additionalProperties: {type: string}}`, "", ""},
		"an item":                   {`{type: object, properties: {a: {type: array, items: {type: string}}}}`, `{type: object, properties: {a: {type: array, items: {type: string, maxLength: 1}}}}`, "v1 spec.a[] has at most 1 characters now", ""},
		"a list that becomes a set": {`{type: object, properties: {a: {type: array, items: {type: string}}}}`, `{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}`, "v1 spec.a is a list of type set, and was atomic", ""},
		"another default":           {`{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, properties: {a: {type: string, default: "y"}}}`, "", `v1 spec.a has the default "y" now`},
	} {
		t.Run(name, func(t *testing.T) {
			var breaking, harmless string
			for _, d := range schema.Compare(definition(t, c.before), definition(t, c.after)) {
				if assert.False(t, d.Kind); d.Breaking {
					breaking += d.String()
				} else {
					harmless += d.String()
				}
			}
			assert.Equal(t, c.breaking, breaking)
			assert.Equal(t, c.harmless, harmless)
		})
	}
}

func TestAKindThatIsAnotherIsBreaking(t *testing.T) {
	for want, change := range map[string]func(before, after *v1.CustomResourceDefinition){
		"the scope is Cluster, and was Namespaced":    func(_, after *v1.CustomResourceDefinition) { after.Spec.Scope = v1.ClusterScoped },
		"the kind is Box, and was Bucket":             func(_, after *v1.CustomResourceDefinition) { after.Spec.Names.Kind = "Box" },
		"v1 is not served any more":                   func(_, after *v1.CustomResourceDefinition) { after.Spec.Versions[0].Served = false },
		"v1 is gone, and objects may be stored in it": func(_, after *v1.CustomResourceDefinition) { after.Spec.Versions = nil },
		"v1 is gone": func(before, after *v1.CustomResourceDefinition) {
			after.Spec.Versions, before.Status.StoredVersions = nil, nil
		},
	} {
		before, after := definition(t, "{type: object}"), definition(t, "{type: object}")
		change(before, after)
		found := schema.Compare(before, after)
		require.Len(t, found, 1, want)
		assert.True(t, found[0].Breaking && found[0].Kind)
		assert.Equal(t, want, found[0].String())
	}
	before, after := definition(t, "{type: object}"), definition(t, "{type: object}")
	before.Spec.Versions[0].Served, after.Spec.Versions = false, nil
	before.Status.StoredVersions = nil
	assert.Empty(t, schema.Compare(before, after), "a version that is neither served nor stored is missed by nobody")
}

func TestTheEffectOnACustomResourceIsTold(t *testing.T) {
	j, err := schema.NewJudge(definition(t, `{type: object, required: [size], properties: {size: {type: integer, maximum: 3}, secret: {type: string, maxLength: 2}}}`), "v1")
	require.NoError(t, err)
	bucket := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "acme.io/v1", "kind": "Bucket", "metadata": map[string]any{"name": "b"}, "spec": spec}}
	}
	assert.True(t, j.Effect(t.Context(), bucket(map[string]any{"size": int64(1)})).Harmless())
	got := j.Effect(t.Context(), bucket(map[string]any{"size": int64(1), "region": "eu"}))
	assert.Equal(t, schema.Effect{Dropped: []string{"spec.region"}}, got)
	got = j.Effect(t.Context(), bucket(map[string]any{"secret": "hunter2"}))
	assert.Equal(t, schema.Effect{Invalid: []string{"spec.secret: Too long", "spec.size: Required value"}}, got)
	assert.NotContains(t, fmt.Sprint(got), "hunter2")

	_, err = schema.NewJudge(definition(t, "{type: object}"), "v2")
	require.EqualError(t, err, "definition buckets.acme.io has no version v2")
}

// What is compared as harmless is harmless to every custom resource that was accepted.
func TestAHarmlessDifferenceHarmsNoCustomResource(t *testing.T) {
	harmless := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // G404: it is to be the same each time.
		one := randomObject(r, 2)
		text, other := encoded(t, one), encoded(t, mutated(r, one))
		before, after := definition(t, text), definition(t, other)
		breaking := false
		for _, d := range schema.Compare(before, after) {
			breaking = breaking || d.Breaking
		}
		if breaking {
			continue
		}
		was, err := schema.NewJudge(before, "v1")
		require.NoError(t, err, text)
		is, err := schema.NewJudge(after, "v1")
		require.NoError(t, err, other)
		for range 20 {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "acme.io/v1", "kind": "Bucket", "metadata": map[string]any{"name": "b"}, "spec": randomValue(r, one)}}
			if !was.Effect(t.Context(), u).Harmless() {
				continue
			}
			harmless++
			require.True(t, is.Effect(t.Context(), u).Harmless(), "seed %d\nbefore %s\nafter %s\nobject %v\n%v", seed, text, other, u.Object, is.Effect(t.Context(), u))
		}
	}
	require.Greater(t, harmless, 1000, "too few custom resources were compared")
}

func encoded(t *testing.T, s map[string]any) string {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return string(text)
}

// randomSchema is a schema for a field; randomObject one for an object.
func randomSchema(r *rand.Rand, depth int) map[string]any {
	switch n := r.IntN(6); {
	case n < 2:
		out := map[string]any{"type": "string"}
		if r.IntN(3) == 0 {
			out["enum"] = []any{"a", "bb"}[:1+r.IntN(2)]
		}
		if r.IntN(3) == 0 {
			out["maxLength"] = 1 + r.IntN(3)
		}
		if r.IntN(4) == 0 {
			out["nullable"] = true
		}
		return out
	case n < 4 || depth == 0:
		out := map[string]any{"type": []string{"integer", "number"}[r.IntN(2)]}
		if r.IntN(3) == 0 {
			out["minimum"] = r.IntN(3)
		}
		if r.IntN(3) == 0 {
			out["maximum"] = 3 + r.IntN(3)
		}
		return out
	case n == 4:
		return map[string]any{"type": "array", "maxItems": 1 + r.IntN(3), "items": randomSchema(r, depth-1)}
	default:
		return randomObject(r, depth-1)
	}
}

func randomObject(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{"type": "object"}
	if r.IntN(6) == 0 {
		out["additionalProperties"] = randomSchema(r, depth)
		return out
	}
	properties, required := map[string]any{}, []any{}
	for _, name := range []string{"a", "b", "c"}[:r.IntN(4)] {
		properties[name] = randomSchema(r, depth)
		if r.IntN(4) == 0 {
			required = append(required, name)
		}
	}
	out["properties"] = properties
	if len(required) > 0 {
		out["required"] = required
	}
	if r.IntN(8) == 0 {
		out["x-kubernetes-preserve-unknown-fields"] = true
	}
	return out
}

// mutated is a schema with some of it made again.
func mutated(r *rand.Rand, s map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range s {
		switch {
		case key == "properties":
			properties := map[string]any{}
			for name, of := range v.(map[string]any) {
				if r.IntN(8) != 0 {
					properties[name] = mutated(r, of.(map[string]any))
				}
			}
			if r.IntN(4) == 0 {
				properties["d"] = randomSchema(r, 0)
			}
			out[key] = properties
		case key == "items", key == "additionalProperties":
			out[key] = mutated(r, v.(map[string]any))
		case key == "type" || r.IntN(5) != 0:
			out[key] = v
		}
	}
	switch out["type"] {
	case "integer":
		if r.IntN(4) == 0 {
			out["type"] = "number"
		}
	case "string":
		if r.IntN(6) == 0 {
			out["maxLength"] = 1 + r.IntN(4)
		}
	}
	return out
}

// randomValue is a value that a schema may take, or nearly.
func randomValue(r *rand.Rand, s map[string]any) any {
	switch s["type"] {
	case "string":
		if r.IntN(6) == 0 {
			return nil
		}
		return []string{"a", "bb", "ccc"}[r.IntN(3)]
	case "integer":
		return int64(r.IntN(7))
	case "number":
		return float64(r.IntN(14)) / 2
	case "array":
		out := []any{}
		for range r.IntN(3) {
			out = append(out, randomValue(r, s["items"].(map[string]any)))
		}
		return out
	default:
		out := map[string]any{}
		if of, ok := s["additionalProperties"].(map[string]any); ok {
			out["k"] = randomValue(r, of)
		}
		if of, ok := s["properties"].(map[string]any); ok {
			for name := range of {
				if r.IntN(4) != 0 {
					out[name] = randomValue(r, of[name].(map[string]any))
				}
			}
		}
		if r.IntN(8) == 0 {
			out["unknown"] = "x"
		}
		return out
	}
}

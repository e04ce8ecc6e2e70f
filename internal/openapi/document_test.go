package openapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const isX = `"x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "X"}]`

func TestWhatIsWrongWithAKindIsSaid(t *testing.T) {
	for name, tt := range map[string]struct{ schemas, want string }{
		"no kind":                 {`{"a": {"type": "object"}}`, "no definition in x.io/v1 is of this kind"},
		"no definitions":          {`null`, "no definition in x.io/v1 is of this kind"},
		"a kind that is no list":  {`{"a": {"x-kubernetes-group-version-kind": "X"}}`, "no definition in x.io/v1 is of this kind"},
		"null":                    {`{"a": null}`, "no definition in x.io/v1 is of this kind"},
		"a mere reference":        {`{"a": {"$ref": "#/components/schemas/b", ` + isX + `}}`, "definition a is a mere reference"},
		"an unknown type":         {`{"a": {"type": "file", ` + isX + `}}`, "convert definition a: unrecognized type: 'file'"},
		"a list type without key": {`{"a": {"properties": {"l": {"type": "array", "items": {}, "x-kubernetes-list-type": "map"}}, ` + isX + `}}`, "convert definition inlined in a: missing map keys"},
		"a part that is missing":  {`{"a": {"properties": {"l": {"$ref": "#/components/schemas/b"}}, ` + isX + `}}`, "definition b is missing"},
		"a part of a part that cannot be converted": {`{"a": {"properties": {"l": {"$ref": "#/components/schemas/b"}}, ` + isX + `},
			"b": {"type": "array", "items": {"$ref": "#/components/schemas/c"}}, "c": {"type": "nonsense"}}`, "convert definition c: unrecognized type: 'nonsense'"},
		"a part that cannot be decoded": {`{"a": {"properties": {"l": {"$ref": "#/components/schemas/b"}}, ` + isX + `}, "b": 7}`, "decode definition b"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := parse([]byte(`{"components": {"schemas": ` + tt.schemas + `}}`))
			require.NoError(t, err)
			_, err = d.of(xKind)
			require.ErrorIs(t, err, errNoSchema)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestADefinitionThatCannotBeConvertedSpoilsNoOtherKind(t *testing.T) {
	d, err := parse([]byte(`{"components": {"schemas": {
		"a": {"type": "object", "properties": {"self": {"$ref": "#/components/schemas/a"}, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}, ` + isX + `},
		"b": {"type": "nonsense"}, "c": 7, "d": {"type": "string"}}}}`))
	require.NoError(t, err)
	pt, err := d.of(xKind)
	require.NoError(t, err)
	assert.Equal(t, "set", describe(at(t, pt, "self.self.set")))
	var kept []string
	for _, def := range d.schema.Types {
		kept = append(kept, def.Name)
	}
	assert.ElementsMatch(t, []string{"a", "__untyped_atomic_", "__untyped_deduced_"}, kept, "no more than the kinds need")
}

func TestWhatIsNoDocumentIsAnError(t *testing.T) {
	for _, data := range []string{"", "<html>", `{"components"`, `[]`, `{"components": {"schemas": []}}`} {
		_, err := parse([]byte(data))
		require.ErrorContains(t, err, "decode the document", data)
		assert.NotErrorIs(t, err, errNoSchema)
	}
}

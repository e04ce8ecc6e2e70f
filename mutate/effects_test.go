package mutate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func dataMap(data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shop"}, "data": data}}
}

// effectsOf are those of a change with that content.
func effectsOf(t *testing.T, sensitive bool, content map[string]any, before, after *unstructured.Unstructured) Effects {
	t.Helper()
	found, err := Change{Sensitive: sensitive, Content: content}.EffectsOf(t.Context(), before, after)
	require.NoError(t, err)
	return found
}

func TestEffectsTellTwoPlansApart(t *testing.T) {
	content := map[string]any{"data": map[string]any{"a": "2"}}
	one := effectsOf(t, false, content, dataMap(map[string]any{"a": "1"}), dataMap(map[string]any{"a": "2"}))
	assert.Equal(t, map[string]string{".data.a": `[{"There":true,"Null":false,"Value":"1"},{"There":true,"Null":false,"Value":"2"}]`}, one.Fields)
	assert.False(t, one.Chosen)
	for name, other := range map[string]Effects{
		"another value before": effectsOf(t, false, content, dataMap(map[string]any{"a": "0"}), dataMap(map[string]any{"a": "2"})),
		"none before":          effectsOf(t, false, content, dataMap(map[string]any{}), dataMap(map[string]any{"a": "2"})),
		"another value after":  effectsOf(t, false, content, dataMap(map[string]any{"a": "1"}), dataMap(map[string]any{"a": "3"})),
		"another field":        effectsOf(t, false, content, dataMap(map[string]any{"a": "1"}), dataMap(map[string]any{"a": "2", "b": "2"})),
		"it goes":              effectsOf(t, false, content, dataMap(map[string]any{"a": "1"}), nil),
	} {
		assert.NotEqual(t, one.Fields, other.Fields, name)
	}
	same := effectsOf(t, false, content, dataMap(map[string]any{"a": "1", "beside": "7"}), dataMap(map[string]any{"a": "2", "beside": "7"}))
	assert.Equal(t, one.Fields, same.Fields, "what it does not touch is no effect")
}

func TestWhatTheContentDoesNotSayIsChosen(t *testing.T) {
	content := map[string]any{"data": map[string]any{"a": "2"}}
	assert.True(t, effectsOf(t, false, content, nil, dataMap(map[string]any{"a": "2", "injected": "x"})).Chosen)
	assert.True(t, effectsOf(t, false, content, dataMap(map[string]any{"a": "1"}), dataMap(map[string]any{"a": "9"})).Chosen)
	assert.False(t, effectsOf(t, false, nil, dataMap(map[string]any{"a": "1"}), nil).Chosen, "a deletion leaves nothing to choose")
}

func TestTheEffectsOnASecretHaveNoValues(t *testing.T) {
	content := map[string]any{"data": map[string]any{"a": "2"}}
	one := effectsOf(t, true, content, dataMap(map[string]any{"a": "1"}), dataMap(map[string]any{"a": "2"}))
	assert.Equal(t, map[string]string{".data.a": ""}, one.Fields)
	assert.Equal(t, one, effectsOf(t, true, content, dataMap(map[string]any{"a": "0"}), dataMap(map[string]any{"a": "2"})))
}

package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
)

func TestTheKindIsFoundWhereverItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want schema.GroupVersionKind
	}{
		"first":                      {`{"apiVersion":"backup.janus.io/v1alpha1","kind":"Transaction","spec":{}}`, api.Kind},
		"the other way round":        {`{"kind":"Status","apiVersion":"v1"}`, schema.GroupVersionKind{Version: "v1", Kind: "Status"}},
		"after something else":       {`{"apiVersion":"v1","metadata":{"kind":"No","a":["}"]},"kind":"Status"}`, schema.GroupVersionKind{Version: "v1", Kind: "Status"}},
		"what follows is not read":   {`{"apiVersion":"v1","kind":"Status","metadata`, schema.GroupVersionKind{Version: "v1", Kind: "Status"}},
		"there is none":              {`{"apiVersion":"v1","status":{"kind":"No"}}`, schema.GroupVersionKind{Version: "v1"}},
		"there is nothing":           {`{}`, schema.GroupVersionKind{}},
		"it is no object":            {`"kind"`, schema.GroupVersionKind{}},
		"it is only that of a field": {`{"object":{"apiVersion":"v1","kind":"Status"}}`, schema.GroupVersionKind{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := firstFields{}.Interpret([]byte(c.text))
			require.NoError(t, err)
			assert.Equal(t, c.want, *got)
		})
	}
}

func TestWhatHasNoKindToBeFoundIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `{"apiVersion":`, `{"apiVersion":"v1","metadata":{"a`, `{"apiVersion":"v1","kind":7}`, `{"apiVersion":"v1" "kind"`} {
		_, err := firstFields{}.Interpret([]byte(text))
		assert.ErrorContains(t, err, "find out the kind of an object", text)
	}
}

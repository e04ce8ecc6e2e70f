package expression_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/internal/expression"
)

var deployment = map[string]any{
	"metadata": map[string]any{"name": "web", "generation": int64(3)},
	"spec":     map[string]any{"replicas": int64(2), "weight": 0.5, "memory": "512Mi"},
	"status":   map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True"}}},
}

func TestWhatAnExpressionSays(t *testing.T) {
	for text, want := range map[string]bool{
		"object.spec.replicas == 2":                true,
		"object.spec.replicas > 2":                 false,
		"object.spec.weight < 0.6":                 true,
		"object == null":                           false,
		"objects.gone == null":                     true,
		`objects["my-config"].data.mode == "blue"`: true,
		`object.status.conditions.exists(c, c.type == "Available" && c.status == "True")`: true,
		`has(object.status.readyReplicas) && object.status.readyReplicas == 2`:            true && false,
		`object.?status.?readyReplicas.orValue(0) == 0`:                                   true,
		`quantity(object.spec.memory).isGreaterThan(quantity("256Mi"))`:                   true,
		`objects["my-config"].data.mode.matches("^bl") && object.metadata.name == "web"`:  true,
		`objects[?"my-config"].hasValue() && objects.?gone.orValue(null) == null`:         true,
		`{"a": 1, "b": 2}.exists(objects, objects == "a")`:                                true,
	} {
		t.Run(text, func(t *testing.T) {
			e, err := expression.Compile(text)
			if text == `{"a": 1, "b": 2}.exists(objects, objects == "a")` {
				require.ErrorContains(t, err, "objects must be followed by the name of a change", "a variable of that name hides what is meant")
				return
			}
			require.NoError(t, err)
			got, err := e.Evaluate(t.Context(), deployment, map[string]map[string]any{
				"gone": nil, "my-config": {"data": map[string]any{"mode": "blue"}},
			})
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

func TestWhatAnExpressionAsksFor(t *testing.T) {
	e, err := expression.Compile(`object != null && objects.db.spec.x == 1 || objects["my-app"] == null || objects.db == null`)
	require.NoError(t, err)
	assert.Equal(t, []string{"db", "my-app"}, e.Names())
	assert.True(t, e.AsksForObject())
	e, err = expression.Compile(`objects.db != null`)
	require.NoError(t, err)
	assert.False(t, e.AsksForObject())
}

func TestABadExpressionIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"object.spec.replicas ==":            "Syntax error",
		"object.spec.replicas + 1":           "it is of type int, and must be true or false",
		`"text"`:                             "it is of type string, and must be true or false",
		"subject == null":                    "undeclared reference to 'subject'",
		"objects.all(name, true)":            "objects must be followed by the name of a change",
		"objects[object.metadata.name] == 1": "objects must be followed by the name of a change",
		"size(objects) == 1":                 "objects must be followed by the name of a change",
		`object.metadata.name.matches("[")`:  "invalid matches argument",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := expression.Compile(text)
			require.ErrorContains(t, err, want)
		})
	}
}

func TestAnExpressionThatCannotBeEvaluated(t *testing.T) {
	for text, want := range map[string]string{
		"object.status.readyReplicas == 2": "no such key: readyReplicas",
		"object.metadata.name":             "it is of type string, and must be true or false",
		// Within the cost limit for expressions of the API server.
		"[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, object != null))))))": "an expression may|longer than",
	} {
		t.Run(text, func(t *testing.T) {
			e, err := expression.Compile(text)
			require.NoError(t, err)
			_, err = e.Evaluate(t.Context(), deployment, nil)
			require.Error(t, err)
			assert.Regexp(t, want, err.Error())
		})
	}
}

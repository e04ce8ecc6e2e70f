package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

// What the pre-flight refuses about a rollback.readyWhen, lint finds without a cluster.
func TestLintKnowsWhatTheExpressionOfARollbackMayAskFor(t *testing.T) {
	for text, want := range map[string][]string{
		"object.data.a == 'b'": nil,
		"objects.b != null":    {"rollback.readyWhen.expression: it asks for objects.b, and may ask for object alone"},
	} {
		c := api.Change{Rollback: &api.ChangeRollback{ReadyWhen: api.ReadyWhen{Expression: text}}}
		assert.Equal(t, want, expressions(c, map[string]bool{"b": true}), text)
	}
	c := api.Change{When: "objects.b != null", Rollback: &api.ChangeRollback{ReadyWhen: api.ReadyWhen{Status: api.StatusReady}}}
	assert.Empty(t, expressions(c, map[string]bool{"b": true}), "of the others it may ask for the other changes")
}

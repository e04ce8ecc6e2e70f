package mutate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

func yes() bool { return true }

// K5, by either type of write: the API server itself refuses to undo it.
func TestK5WhatMakesAConfigMapImmutableIsRefusedUnlessItIsLast(t *testing.T) {
	t.Parallel()
	const frozen = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, immutable: true, data: {color: red}}"
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create(settings)
			i := e.plan(0, kind, frozen)
			fails(t, i.tryPrepare(), errclass.Terminal, errclass.Irreversible, "what is immutable stays so", "acceptLoss: true")
			i.change.Options.Last = yes
			require.NoError(t, i.tryPrepare())
			require.NotEmpty(t, i.warnings)
			assert.Contains(t, i.warnings[0], "a rollback cannot undo it")
			i.done()
			fails(t, i.undo(), errclass.Terminal, errclass.Invalid, "immutable")
			assert.Equal(t, "red", value(t, i.now(), "data", "color"))
		})
	}
}

// One that is immutable already is not irreversible: nothing of it can be written
// but its metadata.
func TestK5WhatIsImmutableAlreadyIsNoPivot(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, immutable: true, data: {color: blue}}")
	i := e.prepare(0, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {a: b}}}").done()
	i.undone()
	i.restored()
}

package mutate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The API server leaves out data in which there is nothing, and keeps anyone who applied it.
func TestWhoAppliedDataWithNothingInItOwnsItAfterUndo(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {a: b}}}")
			e.age(e.apply("gitops", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {}}"))
			i := e.prepare(0, kind, settingsChanged)
			assert.True(t, owns(i.record.Before, "gitops", ".data"))
			assert.NotContains(t, i.record.Before.Object, "data")
			i.done()
			i.undone()
			i.restored()
		})
	}
}

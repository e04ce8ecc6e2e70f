package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/janustest"
)

// A Transaction goes some time after its end, and its before-images with it. One that could
// not be taken back stays.
func TestATransactionGoesWhenItsTimeAfterItsEndIsOver(t *testing.T) {
	t.Parallel()
	e := janustest.New(t)
	e.Apply(ab)
	e.Refuse()
	e.Start()

	for name, changes := range map[string]string{"committed": patchAB, "rolled-back": patchAB + refusedAtCommit} {
		txn := e.Run(name, "ttlSecondsAfterFinished: 2"+changes)
		e.Until(name+" is gone", func() bool { return e.Object("backup.janus.io/v1alpha1 Transaction/"+name) == nil })
		assert.GreaterOrEqual(t, time.Since(txn.Status.CompletionTime.Time), 2*time.Second)
		e.NothingLeft(name)
		if images := txn.Status.RollbackRef; images != nil {
			e.Until("its before-images are gone", func() bool { return e.Object("ConfigMap/"+images.Name) == nil })
		}
	}
}

// The time begins anew for nobody: a janusd that starts long after the end deletes at once
// what is due.
func TestWhatIsDueWhenJanusStartsGoes(t *testing.T) {
	t.Parallel()
	e := janustest.New(t)
	e.Apply(ab)
	janus := e.Start()
	e.Run("due", "ttlSecondsAfterFinished: 3600"+patchAB)
	janus.Stop()
	e.Merge("person", "backup.janus.io/v1alpha1 Transaction/due", `{"status": {"completionTime": "2020-01-01T00:00:00Z"}}`, "status")

	e.Start()
	e.Until("it is gone", func() bool { return e.Object("backup.janus.io/v1alpha1 Transaction/due") == nil })
}

func TestWhatWasStoppedIsKeptAfterItsTime(t *testing.T) {
	t.Parallel()
	e := janustest.New(t)
	e.Apply(ab)
	e.Start(janustest.Recording(janustest.Journaling{After: once(committed(1), func() {
		e.Merge("person", "backup.janus.io/v1alpha1 Transaction/stopped", `{"spec": {"cancel": "Stop"}}`)
	})}))
	txn := e.Run("stopped", "ttlSecondsAfterFinished: 0"+patchAB)
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, janustest.Describe(txn))
	time.Sleep(2 * time.Second)
	assert.NotNil(t, e.Object("backup.janus.io/v1alpha1 Transaction/stopped"))
	assert.NotNil(t, e.Object("ConfigMap/"+txn.Status.RollbackRef.Name))
}

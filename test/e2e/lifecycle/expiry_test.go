package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// A Transaction goes some time after its end, and its before-images with it. One that could
// not be rolled back stays.
func TestATransactionGoesWhenItsTimeAfterItsEndIsOver(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	e.Start()

	for name, changes := range map[string]string{"committed": fixture.PatchAB, "rolled-back": fixture.PatchAB + fixture.RefusedAtCommit} {
		txn := e.Run(name, "ttlSecondsAfterFinished: 2"+changes)
		e.Until(name+" is gone", func() bool { return e.Object("backup.janus.io/v1alpha1 Transaction/"+name) == nil })
		assert.GreaterOrEqual(t, time.Since(txn.Status.CompletionTime.Time), 2*time.Second)
		if images := txn.Status.RollbackRef; images != nil {
			// The garbage collector comes after it.
			e.Until("its before-images are gone", func() bool { return e.Object("ConfigMap/"+images.Name) == nil })
		}
		e.NothingLeft(name)
	}
}

// The time begins again for nobody: a janusd that starts long after the end deletes at
// once what is due.
func TestWhatIsDueWhenJanusStartsGoes(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	janus := e.Start()
	e.Run("due", "ttlSecondsAfterFinished: 3600"+fixture.PatchAB)
	janus.Stop()
	e.Merge("person", "backup.janus.io/v1alpha1 Transaction/due", `{"status": {"completionTime": "2020-01-01T00:00:00Z"}}`, "status")

	e.Start()
	e.Until("it is gone", func() bool { return e.Object("backup.janus.io/v1alpha1 Transaction/due") == nil })
}

func TestWhatWasStoppedIsKeptAfterItsTime(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(1), func() {
		e.Merge("person", "backup.janus.io/v1alpha1 Transaction/stopped", `{"spec": {"cancel": "Stop"}}`)
	})}))
	txn := e.Run("stopped", "ttlSecondsAfterFinished: 0"+fixture.PatchAB+fixture.RefusedAtCommit) // The last is never sent.
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	time.Sleep(2 * time.Second)
	assert.NotNil(t, e.Object("backup.janus.io/v1alpha1 Transaction/stopped"))
	assert.NotNil(t, e.Object("ConfigMap/"+txn.Status.RollbackRef.Name))
}

// Of the Transactions of a namespace that have ended the latest are kept, more of those
// that have failed, and any that can be undone.
func TestTheLatestTransactionsAreKept(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	e.Start(harness.WithRetention(controller.Retention{Completed: ptr.To(1), Failed: ptr.To(2), Every: 100 * time.Millisecond}))

	e.Run("undoable", "revisionHistoryLimit: 5"+fixture.PatchAB)
	for _, name := range []string{"first", "second", "third"} {
		e.Run(name, fixture.PatchAB)
		e.Run("failed-"+name, fixture.PatchAB+fixture.RefusedAtCommit)
		time.Sleep(1100 * time.Millisecond) // Ends are kept by the second.
	}
	left := func() []string {
		list, err := e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).List(e.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		var names []string
		for _, txn := range list.Items {
			names = append(names, txn.GetName())
		}
		slices.Sort(names)
		return names
	}
	want := []string{"failed-second", "failed-third", "third", "undoable"}
	e.Until("the latest are left", func() bool { return slices.Equal(want, left()) })
	time.Sleep(time.Second)
	assert.Equal(t, want, left())
	for _, name := range []string{"first", "second", "failed-first"} {
		e.NothingLeft(name)
	}
}

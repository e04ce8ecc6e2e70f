package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// deletion is a Transaction that is deleted when it has come to a certain point.
type deletion struct {
	phase api.Phase
	// at tells the point from the Transaction as stored.
	at func(t *api.Transaction) bool
	// refused lets the last change be refused.
	refused bool
	// kept lists what is in effect afterwards, if onDelete is Release and if it
	// is Rollback.
	release, rollback []string
	// event is the reason of the event that says what happened.
	releaseEvent, rollbackEvent string
}

var deletions = []deletion{
	{
		phase: api.PhasePending, at: func(t *api.Transaction) bool { return len(t.Finalizers) > 0 && t.Status.Phase == "" },
		releaseEvent: errclass.Cancelled, rollbackEvent: errclass.Cancelled,
	},
	{phase: api.PhasePreparing, at: harness.InPhase(api.PhasePreparing), releaseEvent: errclass.Cancelled, rollbackEvent: errclass.Cancelled},
	{
		phase: api.PhaseCommitting, at: func(t *api.Transaction) bool {
			return t.Status.Phase == api.PhaseCommitting && harness.CommittedItems(t) == 2
		},
		// The intent of the third change is on record by then, and it is made.
		release: []string{"patched", "updated", "created"}, releaseEvent: errclass.Cancelled, rollbackEvent: string(api.PhaseRolledBack),
	},
	{
		phase: api.PhaseRollingBack, refused: true,
		at: func(t *api.Transaction) bool {
			return t.Status.Phase == api.PhaseRollingBack && harness.CommittedItems(t) == 2
		},
		releaseEvent: string(api.PhaseRolledBack), rollbackEvent: string(api.PhaseRolledBack),
	},
	{
		phase: api.PhaseCommitted, at: harness.InPhase(api.PhaseCommitted),
		release: []string{"patched", "updated", "created", "deleted"}, rollback: []string{"patched", "updated", "created", "deleted"},
		releaseEvent: string(api.PhaseCommitted), rollbackEvent: string(api.PhaseCommitted),
	},
	{
		phase: api.PhaseRolledBack, refused: true, at: harness.InPhase(api.PhaseRolledBack),
		releaseEvent: string(api.PhaseRolledBack), rollbackEvent: string(api.PhaseRolledBack),
	},
}

func TestDeletionInEveryPhase(t *testing.T) {
	t.Parallel()
	type run struct {
		deletion
		policy      api.DeletePolicy
		propagation metav1.DeletionPropagation
	}
	var runs []run
	var names []string
	for _, d := range deletions {
		for _, policy := range []api.DeletePolicy{api.DeleteRelease, api.DeleteRollback} {
			for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
				runs = append(runs, run{d, policy, propagation})
				names = append(names, string(d.phase)+"-"+string(policy)+"-"+string(propagation))
			}
		}
	}
	harness.Together(t, 8, names, func(t *testing.T, i int) { runs[i].run(t, runs[i].policy, runs[i].propagation) })
}

func (d deletion) run(t *testing.T, policy api.DeletePolicy, propagation metav1.DeletionPropagation) {
	e := harness.New(t)
	e.Apply(fixture.FourObjects)
	spec := "onDelete: " + string(policy) + "\n" + fixture.FourChanges
	if d.refused {
		e.Refuse()
		spec += fixture.RefusedAtCommit
	}
	before := map[string]*unstructured.Unstructured{}
	for _, target := range fixture.FourTargets {
		before[target.Name] = e.Object(target.Ref)
	}
	reached, deleted := make(chan struct{}), make(chan struct{})
	hit := false
	// However long the deletion takes, the step in flight is finished.
	e.Start(harness.WithPolicy(unhurried()), harness.Recording(harness.Journaling{After: func(txn *api.Transaction) {
		if !hit && d.at(txn) {
			hit = true
			close(reached)
			<-deleted
		}
	}}))
	e.Submit("txn", spec)
	d.await(e, reached)
	e.Delete("txn", propagation)
	if propagation == metav1.DeletePropagationForeground && d.phase == api.PhaseRollingBack {
		// The garbage collector gets at the before-images while they are needed.
		e.Until("the before-images are being deleted", func() bool {
			image := e.Object("ConfigMap/txn-rollback")
			require.NotNil(t, image, "the before-images are lost")
			return image.GetDeletionTimestamp() != nil
		})
	}
	close(deleted)

	e.Gone("txn")

	kept, event := d.release, d.releaseEvent
	if policy == api.DeleteRollback {
		kept, event = d.rollback, d.rollbackEvent
	}
	d.checkTargets(t, e, kept, before)
	e.NothingLeft("txn")
	assert.NotEmpty(t, e.AwaitEvent("txn", event).Note)
}

// await waits until the Transaction is where it is to be deleted.
func (d deletion) await(e *harness.Env, reached <-chan struct{}) {
	e.Until("the Transaction is where it is to be deleted, in phase "+string(d.phase), func() bool {
		select {
		case <-reached:
			return true
		default:
			return false
		}
	})
}

func (d deletion) checkTargets(t *testing.T, e *harness.Env, kept []string, before map[string]*unstructured.Unstructured) {
	t.Helper()
	changed := map[string]bool{}
	for _, name := range kept {
		changed[name] = true
	}
	for _, target := range fixture.FourTargets {
		now := e.Object(target.Ref)
		switch {
		case !changed[target.Name]:
			e.Same(before[target.Name], target.Ref)
		case target.Name == "deleted":
			assert.Nil(t, now, "Secret deleted is there again")
		default:
			if assert.NotNil(t, now, "%s is gone", target.Ref) && before[target.Name] != nil {
				assert.NotEqual(t, before[target.Name].Object["data"], now.Object["data"], "%s was changed back", target.Ref)
			}
		}
	}
}

// The event of a Transaction that was let go says in which phase, and how much of it
// is in effect.
func TestTheEventOfADeletedTransactionSaysWhatStays(t *testing.T) {
	t.Parallel()
	for _, d := range deletions {
		if d.refused || d.phase == api.PhaseCommitted { // It rolls back of itself, or has ended.
			continue
		}
		t.Run(string(d.phase), func(t *testing.T) {
			e := harness.New(t)
			e.Apply(fixture.FourObjects)
			reached, deleted := make(chan struct{}), make(chan struct{})
			hit := false
			e.Start(harness.Recording(harness.Journaling{After: func(txn *api.Transaction) {
				if !hit && d.at(txn) {
					hit = true
					close(reached)
					<-deleted
				}
			}}))
			e.Submit("txn", fixture.FourChanges)
			d.await(e, reached)
			e.Delete("txn", metav1.DeletePropagationBackground)
			close(deleted)
			e.Gone("txn")
			done := "0/4 in effect"
			if d.phase == api.PhaseCommitting {
				done = "3/4 in effect" // of which two are on record
			}
			assert.Equal(t, "deleted in phase "+string(d.phase)+": its locks are released, and its changes stay as they are ("+done+")",
				e.AwaitEvent("txn", errclass.Cancelled).Note)
		})
	}
}

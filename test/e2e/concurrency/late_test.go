package concurrency

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// A Janus hangs before it prepares and wakes up while another makes the changes. It
// finds that a target cannot be created any more, since the other has, and must not
// let go of the locks and before-images that the other relies on.
func TestAJanusThatFailsToPrepareTooLateDisturbsNobody(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.FourObjects)
	e.Refuse()
	patched, deleted := e.Object("ConfigMap/patched"), e.Object("Secret/deleted")
	asleep, awake, woken, made := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	goOn := make(chan struct{})
	done := sync.OnceFunc(func() { close(woken) })
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.InPhase(api.PhasePreparing), func() {
		close(asleep)
		<-awake
	}), Refused: func(*api.Transaction) {
		select {
		case <-awake:
			done()
		default:
		}
	}}))
	e.Submit("txn", fixture.FourChanges+fixture.RefusedAtCommit)
	<-asleep
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(4), func() {
		close(made)
		<-goOn
	})}))
	<-made
	close(awake)
	<-woken
	close(goOn)

	txn := e.Ended("txn")

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(patched, "ConfigMap/patched")
	e.Same(deleted, "Secret/deleted")
	e.NothingLeft("txn")
}

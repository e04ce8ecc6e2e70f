package mutate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// What an owner owns goes with it.
func TestDeleteOfWhatWentWithItsOwnerIsDone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	owner := e.create(ownerMap)
	e.child("owner")
	s := e.saga()
	s.then(api.Delete, ownerMap)
	child := s.then(api.Delete, settings)
	s.do(0)
	e.within("the garbage collector has taken it", func() bool { return child.now() == nil })
	s.do(1)
	child.finds(outcome.Applied)
	s.rollBack()
	s.items[0].restored()
	child.descends(owner)
}

func TestDeleteOfWhatSomebodyElseDeletedIsAConflictThoughItHadAnOwner(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(ownerMap)
	e.child("owner")
	s := e.saga()
	child := s.then(api.Delete, settings)
	e.remove(child.object)
	fails(t, child.do(), errclass.Conflict, errclass.Drifted, "deleted it")
}

func TestDeleteOfWhatWaitsToGoWithItsOwnerWaits(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(ownerMap)
	e.child("owner")
	e.merge("test", parse(t, settings), `{"metadata":{"finalizers":["example.com/held"]}}`)
	s := e.saga()
	s.then(api.Delete, ownerMap)
	child := s.then(api.Delete, settings)
	s.do(0)
	e.within("the garbage collector has asked", func() bool { return child.now().GetDeletionTimestamp() != nil })
	for _, fresh := range []bool{true, false} { // at the first attempt, and at a later one
		child.change.Fences.Fresh = fresh
		fails(t, child.do(), errclass.Retryable, errclass.Terminating, "example.com/held")
	}
	e.merge("test", child.object, `{"metadata":{"finalizers":null}}`)
	child.landed()
}

// Orphaned by an earlier change, it has lost the reference, and nothing else.
func TestDeleteOfWhatAnEarlierChangeOrphanedIsDone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	owner := e.create(ownerMap)
	e.child("owner")
	s := e.saga()
	first := s.plan(0, api.Delete, ownerMap)
	first.change.Environment.OwnerRefs, first.change.Options.Propagation = member{s, 0}, metav1.DeletePropagationOrphan
	require.NoError(t, first.tryPrepare())
	s.items = append(s.items, first)
	child := s.then(api.Delete, settings)
	s.do(0)
	require.Empty(t, child.now().GetOwnerReferences())
	s.do(1)
	s.rollBack()
	first.restored()
	child.descends(owner)
	child.survives()
}

func TestDeleteOfWhatAnEarlierChangeOrphanedAndSomebodyWroteIsAConflict(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(ownerMap)
	e.child("owner")
	s := e.saga()
	first := s.plan(0, api.Delete, ownerMap)
	first.change.Options.Propagation = metav1.DeletePropagationOrphan
	require.NoError(t, first.tryPrepare())
	s.items = append(s.items, first)
	child := s.then(api.Delete, settings)
	s.do(0)
	e.merge("somebody", child.object, `{"data":{"size":"large"}}`)
	fails(t, child.do(), errclass.Conflict, errclass.Drifted, ".data.size")
	assert.NotNil(t, child.now())
}

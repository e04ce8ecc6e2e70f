package mutate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

const ownerMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}, data: {a: b}}"

// child makes the ConfigMap settings, owned by the ConfigMap owner: an applier set
// its content, and another client one of its owners.
func (e *env) child(owners ...string) {
	e.t.Helper()
	obj := e.create(settings)
	var references []metav1.OwnerReference
	for _, name := range owners {
		owner := e.live(parse(e.t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}}"))
		references = append(references, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.GetUID()})
	}
	with := parse(e.t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
	with.SetOwnerReferences(references)
	_, err := e.resource(obj).Apply(e.t.Context(), "settings", with, metav1.ApplyOptions{FieldManager: "adopter"})
	require.NoError(e.t, err)
	e.age(obj)
}

// descends asserts that a target is what it was, under owners with new uids.
func (i *item) descends(owners ...*unstructured.Unstructured) {
	i.t.Helper()
	uids := map[string]types.UID{}
	for _, owner := range owners {
		uids[owner.GetName()] = i.live(owner).GetUID()
	}
	old := map[types.UID]types.UID{}
	for _, owner := range i.record.Before.GetOwnerReferences() {
		old[owner.UID] = uids[owner.Name]
	}
	want, err := fieldmerge.Reown(i.record.Before, func(uid types.UID) types.UID { return old[uid] })
	require.NoError(i.t, err)
	assertSame(i.t, want, i.now())
}

// survives waits long enough for the garbage collector, and asserts that it left the
// target alone.
func (i *item) survives() {
	i.t.Helper()
	uid := i.now().GetUID()
	canary := i.plan(90, api.Create, "{apiVersion: v1, kind: ConfigMap, metadata: {name: canary, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: nobody, uid: 00000000-0000-0000-0000-000000000000}]}}")
	require.NoError(i.t, canary.tryPrepare())
	canary.done()
	i.within("the garbage collector has been here", func() bool { return canary.now() == nil })
	require.NotNil(i.t, i.now(), "the garbage collector took it")
	assert.Equal(i.t, uid, i.now().GetUID())
}

// The owner comes later in the list, so it is back first.
func TestK4ChildOfARecreatedOwnerIsMappedToItsNewUID(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	owner := e.create(ownerMap)
	e.child("owner")
	s := e.saga()
	child := s.then(api.Delete, settings)
	s.then(api.Delete, ownerMap)
	s.do(0)
	s.do(1)
	s.rollBack()
	assert.NotEqual(t, owner.GetUID(), e.live(owner).GetUID())
	child.descends(owner)
	assert.True(t, owns(child.now(), "adopter", `.metadata.ownerReferences[uid="`+string(e.live(owner).GetUID())+`"]`), "%v", entries(child.now()))
	require.Len(t, child.report.Notes, 1)
	assert.Contains(t, child.report.Notes[0], "its owner ConfigMap owner has uid "+string(e.live(owner).GetUID())+" now")
	child.survives()
	child.undone()
	child.descends(owner)
}

// The owner comes earlier in the list, so the child is back before it.
func TestK4ChildThatIsBackBeforeItsOwnerGetsItsReferenceWithTheOwner(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	owner, other := e.create(ownerMap), e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {a: b}}")
	e.child("other", "owner")
	s := e.saga()
	s.then(api.Delete, ownerMap)
	child := s.then(api.Delete, settings)
	s.do(0)
	s.do(1)
	s.undo(1)
	assert.Len(t, child.now().GetOwnerReferences(), 1)
	assert.Contains(t, child.report.Notes[0], "ConfigMap owner is put back when that is re-created")
	child.survives()
	// Another client writes it meanwhile, and that is kept.
	e.merge("somebody", child.object, `{"data":{"size":"large"}}`)
	s.undo(0)
	now := child.now()
	assert.Equal(t, "large", value(t, now, "data", "size"))
	assert.True(t, owns(now, "somebody", ".data.size"))
	assert.True(t, owns(now, "adopter", `.metadata.ownerReferences[uid="`+string(e.live(owner).GetUID())+`"]`), "%v", entries(now))
	assert.Equal(t, []string{"other", "owner"}, []string{now.GetOwnerReferences()[0].Name, now.GetOwnerReferences()[1].Name})
	assert.Len(t, managers(now), 3, "%v", entries(now))
	assert.NotNil(t, e.live(other))
	child.survives()
	version := now.GetResourceVersion()
	s.items[0].undone()
	assert.Equal(t, version, child.now().GetResourceVersion(), "nothing more is written")
}

func TestK4OwnerGoesOnAfterACrashAtAnyRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	owner := e.create(ownerMap)
	e.child("owner")
	for n := range 8 {
		for _, lose := range []bool{false, true} {
			s := e.saga()
			s.then(api.Delete, ownerMap)
			child := s.then(api.Delete, settings)
			s.do(0)
			s.do(1)
			s.undo(1)
			interrupt := child.wire.refuseNth
			if lose {
				interrupt = child.wire.loseNth
			}
			interrupt(n)
			fails(t, s.items[0].undo(), errclass.Unknown, errclass.ServerUnavailable)
			s.wire.requests()
			s.undo(0)
			s.items[0].restored()
			child.descends(owner)
		}
	}
	// What the numbers above stand for.
	s := e.saga()
	s.then(api.Delete, ownerMap)
	s.then(api.Delete, settings)
	s.do(0)
	s.do(1)
	s.undo(1)
	s.wire.requests()
	s.undo(0)
	s.items[0].sent("GET GET POST PATCH GET GET PATCH PATCH")
}

func TestK4ChildWhoseOwnerSomebodyRecreatedBelongsToThatOne(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	owner := e.create(ownerMap)
	e.child("owner")
	s := e.saga()
	s.then(api.Delete, ownerMap)
	child := s.then(api.Delete, settings)
	s.do(0)
	s.do(1)
	s.undo(1)
	theirs := e.apply("somebody", ownerMap)
	fails(t, s.items[0].undo(), errclass.Conflict, errclass.AlreadyExists, "theirs is kept")
	assert.Equal(t, theirs, e.live(owner))
	child.descends(owner)
	child.survives()
}

func TestK4ChildWhoseOwnerIsGoneIsRecreatedWithoutItAndSaysSo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	owner := e.create(ownerMap)
	e.child("owner")
	s := e.saga()
	child := s.then(api.Delete, settings)
	s.do(0)
	e.remove(owner)
	fails(t, child.undo(), errclass.Terminal, errclass.OwnerGone, "re-created without the reference to its owner ConfigMap owner", string(owner.GetUID()))
	child.descends()
	assert.Empty(t, child.now().GetOwnerReferences())
	child.survives()
	made := child.now()
	// Again: the same answer, and nothing is written.
	fails(t, child.undo(), errclass.Terminal, errclass.OwnerGone, "ConfigMap owner")
	assert.Equal(t, made, child.now())
	// Once the owner is back, it is whole.
	e.create(ownerMap)
	child.undone()
	child.descends(owner)
}

func TestK4UndoOfAnOwnedDeleteGoesOnAfterACrashAtAnyRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	owner := e.create(ownerMap)
	e.child("owner")
	for n := range 5 {
		for _, lose := range []bool{false, true} {
			s := e.saga()
			child := s.then(api.Delete, settings)
			s.do(0)
			interrupt := child.wire.refuseNth
			if lose {
				interrupt = child.wire.loseNth
			}
			interrupt(n)
			fails(t, child.undo(), errclass.Unknown, errclass.ServerUnavailable)
			child.wire.requests()
			s.undo(0)
			child.descends(owner)
		}
	}
}

// Both owners come back after the child, one by one.
func TestK4ChildOfTwoOwnersThatComeBackLaterGetsBoth(t *testing.T) {
	t.Parallel()
	const otherMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {a: b}}"
	e := newEnv(t)
	owner, other := e.create(ownerMap), e.create(otherMap)
	e.child("owner", "other")
	s := e.saga()
	s.then(api.Delete, ownerMap)
	s.then(api.Delete, otherMap)
	child := s.then(api.Delete, settings)
	for n := range 3 {
		s.do(n)
	}
	s.undo(2)
	assert.Empty(t, child.now().GetOwnerReferences())
	child.undone() // again, after a crash
	s.undo(1)
	assert.Len(t, child.now().GetOwnerReferences(), 1)
	s.undo(0)
	child.descends(owner, other)
	child.survives()
}

// Another client writes the child at any moment while its reference is put back.
func TestK4ChildMeetsAWriterWhileItsReferenceIsPutBack(t *testing.T) {
	t.Parallel()
	for at := 4; at < 8; at++ {
		e := newEnv(t)
		owner := e.create(ownerMap)
		e.child("owner")
		s := e.saga()
		s.then(api.Delete, ownerMap)
		child := s.then(api.Delete, settings)
		s.do(0)
		s.do(1)
		s.undo(1)
		s.wire.requests()
		s.wire.set(func(n int) {
			if n == at {
				e.merge("somebody", child.object, `{"data":{"size":"large"}}`)
			}
		})
		s.undo(0)
		now := child.now()
		assert.Equal(t, "large", value(t, now, "data", "size"))
		require.Len(t, now.GetOwnerReferences(), 1)
		assert.Equal(t, e.live(owner).GetUID(), now.GetOwnerReferences()[0].UID)
		assert.Equal(t, []string{"adopter Apply", "kubectl Apply", "somebody Update"}, managers(now))
	}
}

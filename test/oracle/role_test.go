package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// Two Transactions are deleting the same object, and the second has taken the lock, which another client
// had taken away from the first.
func TestADeletionIsOfTheTransactionThatSaysSo(t *testing.T) {
	const second = "bbbbcccc-0000-4000-8000-000000000002"
	for says, want := range map[api.ItemState]string{api.ItemCommitted: txnUID, api.ItemRejected: second} {
		t.Run(string(says), func(t *testing.T) {
			w := newWorld()
			w.lock(mapC, second, 0)
			call := w.remove(mapC, account)
			judge := &trial{Evidence: w.evidence, objects: map[Ref]*object{}}
			judge.enterHistory()
			made := judge.objects[mapC].versions[1]
			require.True(t, made.Deleted)
			of := func(uid string, then api.ItemState) *run {
				as := func(revision int64, in api.ItemState) *state {
					one := item{state: string(in), lease: ns + "/" + lockOf(mapC).Name}
					return &state{version: &version{Version: &Version{Revision: revision}}, items: []item{one}}
				}
				return &run{
					Run:  &Run{Namespace: ns, Name: "txn", UID: types.UID(uid), Items: []Ref{mapC}, Spec: api.TransactionSpec{Changes: []api.Change{{Type: api.Delete}}}},
					user: account, states: []*state{as(made.Revision-1, api.ItemCommitting), as(made.Revision+1, then)},
				}
			}
			judge.targets = map[Ref][]*run{mapC: {of(txnUID, says), of(second, api.ItemRejected)}}
			deletion := &write{Call: call, ref: mapC, made: made, item: -1}
			judge.assign(deletion)
			require.NotNil(t, deletion.run)
			assert.Equal(t, want, string(deletion.run.UID))
		})
	}
}

// An owner was deleted after its dependent, could not be created again for a while, and its dependent was
// rolled back before it.
func TestADependentGetsItsOwnerBackWhileThatIsRolledBack(t *testing.T) {
	owned := &unstructured.Unstructured{Object: tree{"metadata": tree{"resourceVersion": "1", "ownerReferences": []any{tree{"uid": "owner"}}}}}
	judge := &trial{objects: map[Ref]*object{mapA: {versions: []*version{{Version: &Version{Revision: 1, Object: owned}}}}}}
	as := func(dependent, owner, other api.ItemState) *state {
		return &state{items: []item{
			{state: string(dependent), before: &image{uid: "dependent", version: "1"}},
			{state: string(owner), before: &image{uid: "owner"}},
			{state: string(other), before: &image{uid: "other"}},
		}}
	}
	r := &run{
		Run:    &Run{Items: []Ref{mapA, mapB, mapC}, Spec: api.TransactionSpec{Changes: []api.Change{{Type: api.Delete}, {Type: api.Delete}, {Type: api.Delete}}}},
		states: []*state{as(api.ItemCommitting, api.ItemPending, api.ItemPending)},
	}
	assert.True(t, judge.allows(as(api.ItemRolledBack, api.ItemRollingBack, api.ItemRolledBack), 0, undo, r))
	assert.False(t, judge.allows(as(api.ItemRolledBack, api.ItemCommitted, api.ItemRollingBack), 0, undo, r), "another Delete is no reason")
	assert.False(t, judge.allows(as(api.ItemRolledBack, api.ItemRolledBack, api.ItemRolledBack), 0, undo, r), "its owner is back")
	assert.False(t, judge.allows(as(api.ItemRolledBack, api.ItemRollingBack, api.ItemRolledBack), 2, undo, r), "nothing owned it")
	assert.True(t, judge.waitedForOwner(r, 0))
}

package ui

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

// Whether a target is deleted in place of its change is told, and whether it may be.
func TestTheNotesSayWhatIsDeletedInstead(t *testing.T) {
	txn := &api.Transaction{}
	on := api.Target{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	txn.Spec.Changes = []api.Change{{Name: "root", Type: api.Patch, Target: on, When: "object == null", WhenFalse: api.WhenFalseDelete}, {Name: "leaf", Type: api.Create, Target: on}}
	notes := func() (root, leaf []string) {
		items := itemsOf(txn)
		return items[0].Notes, items[1].Notes
	}
	root, leaf := notes()
	assert.Equal(t, []string{"deleted if its when is false"}, root)
	assert.Empty(t, leaf, "that is found out later")

	txn.Status.Items = []api.Item{{Name: "root", Target: on}, {Name: "leaf", Target: on, DeletedWith: []string{"root"}}}
	_, leaf = notes()
	assert.Equal(t, []string{"deleted if the when of root is false"}, leaf)

	txn.Status.Items[0].Type, txn.Status.Items[1].Type = api.Delete, api.Delete
	txn.Status.Items[0].Results = []api.ConditionResult{{Condition: api.ConditionWhen}}
	items := itemsOf(txn)
	assert.Contains(t, items[0].Notes, "deletes its target, because a when is false")
	assert.Equal(t, []string{"deletes its target, because a when is false"}, items[1].Notes)
	assert.Equal(t, "Delete", items[1].Type)
}

package wiring

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

func transactionOf(changes ...[2]string) *api.Transaction {
	t := &api.Transaction{}
	for _, c := range changes {
		target := api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: c[1]}
		t.Spec.Changes = append(t.Spec.Changes, api.Change{Type: api.ChangeType(c[0]), Target: target})
		t.Status.Items = append(t.Status.Items, api.Item{Target: target, Resource: "configmaps"})
	}
	return t
}

func TestOneHandOverForEachObjectThatIsThereAfterTheCommit(t *testing.T) {
	got, err := chainsOf(transactionOf(
		[2]string{"Patch", "a"}, [2]string{"Create", "b"}, [2]string{"Patch", "a"}, [2]string{"Delete", "c"},
		[2]string{"Update", "b"}, [2]string{"Patch", "d"}, [2]string{"Delete", "d"}, [2]string{"Create", "c"},
		[2]string{"Patch", "e"}, [2]string{"Delete", "e"}, [2]string{"Create", "e"}, [2]string{"Patch", "e"},
	))
	require.NoError(t, err)
	assert.Equal(t, []chain{
		{first: 0, last: 2},
		{first: 1, last: 4, made: true},
		{first: 7, last: 7, made: true},
		{first: 10, last: 11, made: true},
	}, got)
}

package controller

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
)

func TestACopyOfWhatTheWatchDecodesSharesNothing(t *testing.T) {
	t.Parallel()
	var list decodedList
	require.NoError(t, json.Unmarshal([]byte(`{"kind":"TransactionList","metadata":{"resourceVersion":"9"},"items":[
		{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"ttlSecondsAfterFinished":5,"changes":[]},"status":{"phase":"Failed","items":[{"state":"Unresolved"}]}}]}`), &list))
	was, err := json.Marshal(list)
	require.NoError(t, err)
	out, ok := list.DeepCopyObject().(*decodedList)
	require.True(t, ok)
	assert.Equal(t, &list, out)
	out.Items[0].Labels["x"], out.Items[0].Status.Items[0], out.Items[0].Spec.Changes[0] = "z", ' ', ' '
	*out.Items[0].Spec.TTLSecondsAfterFinished = 6
	is, err := json.Marshal(list)
	require.NoError(t, err)
	assert.JSONEq(t, string(was), string(is))
}

// What is read of a Transaction has the names that it is written by.
func TestWhatTheWatchDecodesIsWhatATransactionHas(t *testing.T) {
	t.Parallel()
	end := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	text, err := json.Marshal(&api.Transaction{
		Spec: api.TransactionSpec{TTLSecondsAfterFinished: ptr.To[int32](60)},
		Status: api.TransactionStatus{
			Phase: api.PhaseCommitted, ObservedGeneration: 7, CompletionTime: &end,
			RollbackRef: &api.RollbackRef{Name: "a"}, Items: []api.Item{{State: api.ItemUnresolved}},
		},
	})
	require.NoError(t, err)
	var is decoded
	require.NoError(t, json.Unmarshal(text, &is))
	assert.Equal(t, int64(60), *is.Spec.TTLSecondsAfterFinished)
	assert.NotNil(t, is.Status.RollbackRef)
	assert.JSONEq(t, `[{"name":"","target":{"apiVersion":"","kind":"","name":""},"state":"Unresolved","prepared":false,"committed":false,"rolledBack":false}]`, string(is.Status.Items))
	trimmed, err := trim(&is)
	require.NoError(t, err)
	assert.Equal(t, &summary{
		phase: api.PhaseCommitted, observed: 7, completion: metav1.NewTime(end.Local()), ttl: ptr.To(time.Minute), stays: true,
	}, trimmed)
}

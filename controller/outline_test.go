package controller

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

func TestACopyOfWhatTheWatchDecodesSharesNothing(t *testing.T) {
	var list outlines
	require.NoError(t, json.Unmarshal([]byte(`{"kind":"TransactionList","metadata":{"resourceVersion":"9"},"items":[
		{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"ttlSecondsAfterFinished":5},"status":{"phase":"Failed","items":[{"state":"Unresolved"}]}}]}`), &list))
	was, err := json.Marshal(list)
	require.NoError(t, err)
	out, ok := list.DeepCopyObject().(*outlines)
	require.True(t, ok)
	assert.Equal(t, &list, out)
	out.Items[0].Labels["x"], out.Items[0].Status.Items[0].State = "z", api.ItemCommitted
	*out.Items[0].Spec.TTLSecondsAfterFinished = 6
	is, err := json.Marshal(list)
	require.NoError(t, err)
	assert.JSONEq(t, string(was), string(is))
}

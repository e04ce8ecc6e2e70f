package mutate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// An old deadline that is over by now would end the Job for good.
func TestARollbackLeavesADeadlineThatWouldEndAJob(t *testing.T) {
	c := Change{Ref: target.Ref{GVK: batchv1.SchemeGroupVersion.WithKind("Job"), Namespace: "shop", Name: "work"}}
	c.Environment.Now = time.Now
	job := func(deadline int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"activeDeadlineSeconds": deadline},
			"status": map[string]any{"startTime": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)},
		}}
	}
	found, err := c.harms(t.Context(), moment{}, job(9000), job(60))
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, errclass.Irreversible, found[0].reason)
	assert.Contains(t, found[0].what, "it fails for good once it has run for 60 seconds")
	found, err = c.harms(t.Context(), moment{}, job(9000), job(7200))
	require.NoError(t, err)
	assert.Empty(t, found)
}

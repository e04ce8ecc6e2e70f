package ownership

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// By autoscaling/v1 conditions are annotations, and its controller writes them every 15 s.
func TestTheStatusOfAnAutoscalerIsNoDriftByTheVersionThatShowsItAsAnnotations(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 4}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: step}, data: {a: "1"}}
`)
	const status = `{"status":{"desiredReplicas":2,"conditions":[{"type":"ScalingLimited","status":"True","reason":"X","message":"x","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	e.Start(harness.Acting(harness.Around{Do: func(_ string, item int) {
		if item == 1 {
			_, err := e.Kube.AutoscalingV2().HorizontalPodAutoscalers(e.Namespace).Patch(context.Background(), "web", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
			assert.NoError(t, err)
		}
	}}))

	txn := e.Run("more", `changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: step}, type: Patch, content: {data: {a: "2"}}}
  - {target: {apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, name: web}, type: Patch, content: {spec: {maxReplicas: 8}}}`)

	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	scaler, err := e.Kube.AutoscalingV2().HorizontalPodAutoscalers(e.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 8, scaler.Spec.MaxReplicas)
}

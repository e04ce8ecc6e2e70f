package mutate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

func TestANamespaceThatCannotBeEmptiedNamesTheAPIThatDoesNotAnswer(t *testing.T) {
	c := Change{Ref: target.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: "shop"}}
	namespace := func(status string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Namespace", "status": map[string]any{"conditions": []any{
			map[string]any{"type": "NamespaceContentRemaining", "status": "True", "message": "some"},
			map[string]any{"type": "NamespaceDeletionDiscoveryFailure", "status": status, "message": "example.com/v1: stale GroupVersion discovery"},
		}}}}
	}
	err := c.awaitGone(namespace("True"))
	assert.Equal(t, errclass.ByDeadAPI, errclass.RefuserOf(err))
	assert.Equal(t, errclass.Terminating, errclass.ReasonOf(err))
	require.ErrorContains(t, err, "and waits until what is in it can be told: example.com/v1: stale GroupVersion discovery; see `kubectl get apiservices`")
	err = c.awaitGone(namespace("False"))
	assert.Empty(t, errclass.RefuserOf(err))
	require.ErrorContains(t, err, "and waits until what is in it is gone")
}

package objectid_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/internal/objectid"
)

func TestIDsAreOrderedByGroupThenResourceThenNamespaceThenName(t *testing.T) {
	t.Parallel()
	ids := []objectid.ID{
		{Resource: "events", Namespace: "a", Name: "a"},
		{Resource: "events", Namespace: "a", Name: "b"},
		{Resource: "events", Namespace: "b", Name: "a"},
		{Resource: "pods", Namespace: "a", Name: "a"},
		{Group: "apps", Resource: "deployments", Namespace: "a", Name: "a"},
	}
	assert.True(t, slices.IsSortedFunc(ids, objectid.ID.Compare))
	assert.Zero(t, ids[0].Compare(ids[0]))
	assert.Positive(t, ids[1].Compare(ids[0]))
}

func TestAnIDIsWrittenAsKubectlNamesObjects(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "deployments.apps shop/web", objectid.ID{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}.String())
	assert.Equal(t, "namespaces shop", objectid.ID{Resource: "namespaces", Name: "shop"}.String())
}

package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
)

func TestFieldsAreAskedForWithWhatIsInsideAndWhatTheyAreInsideOf(t *testing.T) {
	t.Parallel()
	fields := []string{".spec.replicas", ".spec.replicasMore", ".spec.selector", `.spec.containers[name="web"].image`, `.spec.containers[name="web"].env[name="A"].value`}
	assert.Equal(t, fields, asked(fields, nil))
	assert.Equal(t, []string{".spec.replicas"}, asked(fields, []string{"spec.replicas"}))
	assert.Equal(t, []string{".spec.selector"}, asked(fields, []string{".spec.selector.matchLabels.app"}))
	assert.Equal(t, fields[3:], asked(fields, []string{".spec.containers"}))
	assert.Equal(t, fields[4:], asked(fields, []string{`.spec.containers[name="web"].env`}))
	assert.Empty(t, asked(fields, []string{".metadata"}))
}

// The ClusterRole view, which lets people read revisions, grants no Secret and nothing that has no namespace.
func TestWhoMayNotReadAnObjectIsToldTheRight(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	refused := apierrors.NewForbidden(secrets.GroupResource(), "key", errors.New("no"))
	of := api.Target{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "key"}
	require.EqualError(t, unseen(of, secrets, refused), `read Secret shop/key: secrets "key" is forbidden: no; ask for the verb get on secrets`)
	require.EqualError(t, unseen(of, secrets, errors.New("reset")), "read Secret shop/key: reset")
}

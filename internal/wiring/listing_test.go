package wiring

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/mutate"
)

// lister is a session whose Transaction creates n ConfigMaps, of which there is the first.
func lister(t *testing.T, n int, may bool) (session, *reviews, *fake.FakeMetadataClient) {
	t.Helper()
	r := &reviews{allow: may}
	s := asking(clocktesting.NewFakeClock(time.Unix(1, 0)), r)
	scheme := fake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	client := fake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c-0", UID: "u", ResourceVersion: "7"},
	})
	s.id.Metadata, s.parallel = client, 4
	s.txn = &api.Transaction{}
	for i := range n {
		target := api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("c-%d", i)}
		s.txn.Spec.Changes = append(s.txn.Spec.Changes, api.Change{Type: api.Create, Target: target})
		s.txn.Status.Items = append(s.txn.Status.Items, api.Item{Type: api.Create, Target: target, Resource: "configmaps"})
	}
	return s, r, client
}

func all(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func TestAListTellsOfManyTargets(t *testing.T) {
	s, r, client := lister(t, fewestListed, true)
	for range 2 {
		listed := s.list(t.Context(), all(fewestListed))
		for i := range fewestListed {
			ref, err := refOf(s.txn.Status.Items[i])
			require.NoError(t, err)
			v, known := listed.versionOf(ref)
			assert.True(t, known)
			if i == 0 {
				assert.Equal(t, mutate.Version{UID: "u", ResourceVersion: "7"}, v)
			} else {
				assert.Equal(t, mutate.Version{}, v)
			}
			before, spared := earlier{listed: listed}.before(i, ref, true)
			assert.Equal(t, i > 0, spared, "what exists, and was not read before, is read")
			assert.Nil(t, before)
			_, spared = earlier{listed: listed}.before(i, ref, false)
			assert.False(t, spared, "what a list lacks and is not to be created is read")
			met := newTries("t", "a")
			met.items[i] = tried{meets: mutate.Version{UID: "u", ResourceVersion: "6"}}
			_, spared = earlier{met, listed}.before(i, ref, false)
			assert.False(t, spared, "what the pre-flight has met is read where it has changed, and where a list lacks it")
			met.items[i] = tried{}
			_, spared = earlier{met, listed}.before(i, ref, false)
			assert.Equal(t, i > 0, spared, "what neither the pre-flight has met nor the list is not read")
		}
	}
	assert.Equal(t, 1, r.asked)
	assert.Len(t, client.Actions(), 2)
}

func TestWhatIsNotListedIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		targets int
		may     bool
		react   func() (bool, runtime.Object, error)
		lists   int // of two tries
	}{
		"few targets": {targets: fewestListed - 1, may: true},
		"no right":    {targets: fewestListed},
		"an error": {fewestListed, true, func() (bool, runtime.Object, error) {
			return true, nil, errors.New("no")
		}, 2},
		"too many": {fewestListed, true, func() (bool, runtime.Object, error) {
			return true, &metav1.List{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, client := lister(t, c.targets, c.may)
			if c.react != nil {
				client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return c.react() })
			}
			for range 2 {
				assert.Empty(t, s.list(t.Context(), all(c.targets)))
			}
			assert.Len(t, client.Actions(), c.lists)
		})
	}
}

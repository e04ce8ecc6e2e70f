package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// groups is a discovery of which only the error of the whole is asked for.
type groups struct {
	discovery.DiscoveryInterface
	err error
}

func (g groups) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return nil, nil, g.err
}

// A kind that is not served is gone, unless its API server does not answer: then its objects are there, and
// the set would forget them.
func TestWhatIsPrunedIsNotTakenForGoneWhileItsKindsCannotBeAskedFor(t *testing.T) {
	was := &unstructured.Unstructured{Object: map[string]any{}}
	was.SetAnnotations(map[string]string{applySetKinds: "Thing.metrics.example.org"})
	pruned := func(err error) error {
		v := &surveyor{mapper: meta.NewDefaultRESTMapper(nil), discovery: groups{err: err}, namespace: "shop"}
		gone, err := v.prune(t.Context(), &applySet{id: "id", was: was}, nil)
		assert.Empty(t, gone)
		return err
	}
	failed := func(group string) error {
		return &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: group, Version: "v1"}: errors.New("the server is unable to handle the request")}}
	}
	require.NoError(t, pruned(nil))
	require.NoError(t, pruned(failed("other.example.org")))
	require.EqualError(t, pruned(failed("metrics.example.org")), "list what --prune is to delete of Thing.metrics.example.org: "+
		"the kinds of group metrics.example.org cannot be asked for: the server is unable to handle the request; see kubectl get apiservices")
	require.EqualError(t, pruned(errors.New("no route to host")), "list what --prune is to delete of Thing.metrics.example.org: no route to host")
}

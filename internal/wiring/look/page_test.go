package look

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/lockmgr"
)

// The name is that under which the lock is kept, in the namespace of the object or in that of janusd.
func TestTheNameOfALock(t *testing.T) {
	of := LeaseOf("janus-system")
	web := lockmgr.Key{ID: objectid.ID{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}, Kind: "Deployment"}
	assert.Equal(t, "shop/"+web.LeaseName(), of(api.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, "deployments"))
	node := lockmgr.Key{ID: objectid.ID{Resource: "nodes", Name: "a"}, Kind: "Node"}
	assert.Equal(t, "janus-system/"+node.LeaseName(), of(api.Target{APIVersion: "v1", Kind: "Node", Name: "a"}, "nodes"))
}

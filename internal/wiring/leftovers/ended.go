package leftovers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// Ended is a Transaction that has ended, as little of it as tells what may be left.
type Ended struct {
	Name types.NamespacedName
	UID  types.UID
	// Images are the before-images that its status names.
	Images *api.RollbackRef
}

// A Change is what of a change, and of its item, tells how many before-images were saved.
type Change struct {
	When       string    `json:"when"`
	Activation *struct{} `json:"activation"`
}

// An Item is the same of an item.
type Item struct {
	Target       api.Target `json:"target"`
	Confidential bool       `json:"confidential"`
	DeferredBy   string     `json:"deferredBy"`
	DeletedWith  []string   `json:"deletedWith"`
}

// IsPlain reports whether the before-images of a Transaction can only be in ConfigMaps, and were saved
// together: each of its changes is of another target, is made in any case, and is of no kind that is
// confidential.
func IsPlain(changes []Change, items []Item, images *api.RollbackRef, sensitive func(schema.GroupKind) bool) bool {
	if len(items) == 0 || len(items) != len(changes) {
		return false
	}
	for _, change := range changes {
		if change.When != "" || change.Activation != nil {
			return false
		}
	}
	targets := map[api.Target]bool{}
	for _, item := range items {
		gv, err := schema.ParseGroupVersion(item.Target.APIVersion)
		if err != nil || item.Confidential || item.DeferredBy != "" || len(item.DeletedWith) > 0 || sensitive(gv.WithKind(item.Target.Kind).GroupKind()) {
			return false
		}
		// Two versions of a kind are one target.
		id := item.Target
		id.APIVersion = gv.Group
		if targets[id] {
			return false
		}
		targets[id] = true
	}
	return images == nil || !slices.ContainsFunc(images.Objects, func(name string) bool { return !strings.HasPrefix(name, "ConfigMap/") })
}

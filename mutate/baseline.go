package mutate

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Version is what a conditional write must meet.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// VersionOf returns the version of an object, or the zero value for none.
func VersionOf(obj *unstructured.Unstructured) Version {
	if obj == nil {
		return Version{}
	}
	return Version{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
}

// Baseline is the target as it was when it was prepared. A write that meets it
// needs no more than its version; the image is fetched when it does not.
type Baseline struct {
	Version
	Image func(ctx context.Context) (*unstructured.Unstructured, error)
	// Idle is set when the change, made to the target as it was, would leave it as it is,
	// its field owners too.
	Idle bool
}

// Absent reports that the target did not exist.
func (b Baseline) Absent() bool { return b.UID == "" }

// BaselineOf makes a Baseline of an image at hand, which may be nil.
func BaselineOf(image *unstructured.Unstructured) Baseline {
	return Baseline{Version: VersionOf(image), Image: func(context.Context) (*unstructured.Unstructured, error) { return image, nil }}
}

package mutate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// Read gets the target, nil if it does not exist, which is confirmed. One that exists and
// is not served any more by the version that the change is written for is an error.
func Read(ctx context.Context, c Change) (*unstructured.Unstructured, error) {
	found, live, err := c.locate(ctx)
	if err != nil || live == nil || found.Ref.GVK == c.Ref.GVK {
		return live, err
	}
	return nil, c.fail(errclass.Terminal, errclass.KindNotFound, "read", "the cluster serves it in %s and not in %s",
		found.Ref.GVK.GroupVersion(), c.Ref.GVK.GroupVersion()).WithHint("serve that version again, or compare it with the before-image and correct it by hand")
}

// at is the change with its target named otherwise, or with another object for a target.
func (c Change) at(ref target.Ref) Change {
	c.Ref = ref
	return c
}

// client reads and writes the target.
func (c Change) client() dynamic.ResourceInterface {
	return c.Environment.clientOf(c.Ref.GVR, c.Ref.Namespace)
}

// readSince reads a target that was seen before, by whatever version of its kind is served.
// What is older than that is not believed at once: that another object has the name says
// that the one before is gone.
func (c Change) readSince(ctx context.Context, before Version) (*unstructured.Unstructured, error) {
	_, live, err := c.locate(ctx)
	if err != nil || live == nil {
		return nil, err
	}
	if order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), before.ResourceVersion); err == nil && order < 0 {
		_, live, err := c.locate(ctx)
		return live, err
	}
	return live, nil
}

// Marked reports whether an object shows that the change has written it. One that does not may have
// been read as it was before.
func (c Change) Marked(obj *unstructured.Unstructured) bool { return c.Names.owns(obj) }

// unreadable is the error of a target that the API server takes for a list.
func (c Change) unreadable() error {
	return c.fail(errclass.Terminal, errclass.Invalid, "read", "the API server cannot show it: an object with a list named items at its top looks like a list of objects").
		WithHint("change it outside of a Transaction")
}

// locate gets the target by whatever version of its kind is served, and the change that
// meets it there. The target is nil if it does not exist, which is confirmed. That a
// version is not served says nothing of its objects: another may show them. That is as
// good for all who ask only whether an object is there, and whose it is.
func (c Change) locate(ctx context.Context) (Change, *unstructured.Unstructured, error) {
	for range attempts {
		live, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
			return c.client().Get(ctx, c.Ref.Name, metav1.GetOptions{})
		})
		switch {
		case err == nil:
			return c, live, nil
		case errclass.Unshowable(err):
			return c, nil, c.unreadable()
		case !errclass.Is(err, errclass.NotFound) && !errclass.Is(err, errclass.NamespaceNotFound):
			return c, nil, c.wrap(err, "read")
		case !errclass.Unserved(err) || c.Environment.Elsewhere == nil:
			return c, nil, nil
		}
		ref, served, err := c.Environment.Elsewhere()
		if err != nil || !served { // Objects go with their kind.
			return c, nil, c.wrap(err, "read")
		}
		if ref.GVK == c.Ref.GVK {
			break
		}
		c = c.at(ref)
	}
	return c, nil, c.fail(errclass.Unknown, errclass.ServerUnavailable, "read", "the API server says that it serves %s, and answers as if it did not", c.Ref.GVK.GroupVersion())
}

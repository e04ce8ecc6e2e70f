package mutate

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate/kinds"
)

// Some objects stand for something outside of the cluster, which their controllers delete with
// them: a snapshot, a bucket, a database of a cloud. A before-image does not hold that.

// content is what an object stands for that was there before it.
type content struct {
	// what names it.
	what string
	// holder is the object that has its policy; nil if that is gone.
	holder *unstructured.Unstructured
}

// older returns what an object of such a kind names that was there before it; nil for nothing.
func (c Change) older(ctx context.Context, known kinds.Outside, obj *unstructured.Unstructured) (*content, error) {
	name, _, _ := unstructured.NestedString(obj.Object, known.Older...)
	switch {
	case name == "":
		return nil, nil
	case known.Holder == "":
		return &content{"what " + strings.Join(known.Older, ".") + " names", obj}, nil
	}
	out := &content{what: errclass.Printable(known.Holder + " " + name)}
	holder, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
		return c.Environment.Cluster.Resource(c.Ref.GVK.GroupVersion().WithResource(known.Holder)).Get(ctx, name, metav1.GetOptions{})
	})
	if errclass.Is(err, errclass.NotFound) {
		return out, nil
	}
	if err != nil {
		return nil, errclass.Wrap(err, "read", out.what, false)
	}
	out.holder = holder
	return out, nil
}

func deletionPolicy(obj *unstructured.Unstructured) string {
	policy, _, _ := unstructured.NestedString(obj.Object, "spec", "deletionPolicy")
	return policy
}

// boundTo reports whether the holder of a content is bound to an object.
func (of content) boundTo(obj *unstructured.Unstructured, known kinds.Outside) bool {
	for _, path := range known.BoundTo {
		if uid, _, _ := unstructured.NestedString(of.holder.Object, path...); uid != "" && uid == string(obj.GetUID()) {
			return true
		}
	}
	return false
}

// admitContent does for these what admitVolume does for claims.
func (c Change) admitContent(ctx context.Context, live *unstructured.Unstructured) error {
	known, ok := kinds.OutsideOf(c.Ref.GVK.GroupKind())
	if !ok {
		return nil
	}
	older, err := c.older(ctx, known, live)
	if err != nil || older == nil || older.holder == nil {
		return err
	}
	if policy := deletionPolicy(older.holder); policy != kinds.Retain {
		return c.fail(errclass.Terminal, errclass.Irreversible, "delete", "%s, which was there before, would be destroyed with it: the deletion policy is %s", older.what, errclass.Printable(policy)).
			WithHint("it is kept; set the deletionPolicy to Retain and delete it by hand")
	}
	return nil
}

// outsideLoss says what outside of the cluster would be lost with the target.
func (c Change) outsideLoss(ctx context.Context, before *unstructured.Unstructured) (string, error) {
	known, ok := kinds.OutsideOf(c.Ref.GVK.GroupKind())
	if !ok {
		if field := kinds.Destroys(before); field != "" {
			return "its " + errclass.Printable(field) + " has its controller destroy with it what it stands for, and a rollback would have another made", nil
		}
		return "", nil
	}
	older, err := c.older(ctx, known, before)
	switch {
	case errclass.Is(err, errclass.AccessDenied):
		return "whether the content that it names outlives it cannot be told, because the ServiceAccount may not get " + known.Holder, nil
	case err != nil:
		return "", err
	case older == nil:
		return known.Remade.Ahead, nil
	case older.holder == nil:
		return "", nil
	}
	switch policy := deletionPolicy(older.holder); {
	case policy != kinds.Retain:
		return "the deletion policy of " + older.what + " is " + errclass.Printable(policy) + ", so its data would be lost", nil
	case older.boundTo(before, known):
		return older.what + " is bound to it by its uid, and a rollback would not bind it again", nil
	default:
		return "", nil
	}
}

// lostOutside says what a re-created object lacks of it.
func (c Change) lostOutside(ctx context.Context, before *unstructured.Unstructured) ([]string, error) {
	known, ok := kinds.OutsideOf(c.Ref.GVK.GroupKind())
	if !ok {
		if field := kinds.Destroys(before); field != "" {
			return []string{"re-created: what it stood for was destroyed by its " + errclass.Printable(field) + ", and is made again"}, nil
		}
		return nil, nil
	}
	older, err := c.older(ctx, known, before)
	switch {
	case errclass.Is(err, errclass.AccessDenied):
		return nil, nil
	case err != nil:
		return nil, err
	case older == nil:
		return []string{known.Remade.After}, nil
	case older.holder == nil:
		return []string{older.what + " does not exist"}, nil
	case older.holder.GetDeletionTimestamp() != nil || deletionPolicy(older.holder) != kinds.Retain:
		return []string{older.what + " was destroyed with it, and its data too"}, nil
	case older.boundTo(before, known):
		return []string{older.what + " is kept, but bound to the object that was deleted"}, nil
	default:
		return nil, nil
	}
}

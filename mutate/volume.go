package mutate

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate/kinds"
)

// volumeName is the volume that a claim is bound to, empty for none and for objects
// that are no claims.
func (c Change) volumeName(claim *unstructured.Unstructured) string {
	if c.Ref.GVK.GroupKind() != kinds.Claim {
		return ""
	}
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	return name
}

// readVolume gets a volume, nil if it does not exist.
func (c Change) readVolume(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	volume, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
		return c.Environment.Cluster.Resource(kinds.Volumes).Get(ctx, name, metav1.GetOptions{})
	})
	if errclass.Is(err, errclass.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, errclass.Wrap(err, "read", "PersistentVolume "+name, false)
	}
	return volume, nil
}

// freeVolume lets the volume of a claim that was deleted be bound again by the claim
// that is re-created under its name, and by no other: it takes the uid of the old
// claim off the volume's claimRef. A volume that is gone, or going, has nothing to
// give. An undo does not have the uid of the old claim: there is none of that name, and
// so none that the volume could be bound to.
func (c Change) freeVolume(ctx context.Context, claim *unstructured.Unstructured, dry bool) error {
	name := c.volumeName(claim)
	if name == "" {
		return nil
	}
	volume, err := c.readVolume(ctx, name)
	if err != nil {
		return c.volumeDenied(name, err)
	}
	if volume == nil || volume.GetDeletionTimestamp() != nil {
		return nil
	}
	switch holder := claimRef(volume); {
	case holder["name"] == "", c.holds(holder) && holder["uid"] == "":
		return nil
	case !c.holds(holder), claim.GetUID() != "" && holder["uid"] != string(claim.GetUID()):
		reason := errclass.Drifted
		if c.Options.Inverts {
			reason = errclass.Irreversible
		}
		return c.fail(errclass.Conflict, reason, "re-create", "its volume %s belongs to claim %s/%s (uid %s) now", name, holder["namespace"], holder["name"], holder["uid"]).
			WithHint("it stays there; re-create the claim by hand with another volume")
	}
	body, err := conditional(map[string]any{"spec": map[string]any{"claimRef": map[string]any{"uid": nil, "resourceVersion": nil}}}, volume)
	if err != nil {
		return err
	}
	_, err = c.Environment.Cluster.Resource(kinds.Volumes).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: c.Names.Manager, DryRun: dryRun(dry)})
	if err != nil {
		return c.volumeDenied(name, errclass.Wrap(err, "free", "PersistentVolume "+name, false))
	}
	return nil
}

// holds reports whether the claimRef of a volume names the target.
func (c Change) holds(holder map[string]string) bool {
	return holder["namespace"] == c.Ref.Namespace && holder["name"] == c.Ref.Name
}

// claimRef returns the fields of a volume's claimRef that are text.
func claimRef(volume *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	reference, _, _ := unstructured.NestedMap(volume.Object, "spec", "claimRef")
	for key, v := range reference {
		if text, ok := v.(string); ok {
			out[key] = text
		}
	}
	return out
}

func (c Change) volumeDenied(name string, cause error) error {
	if !errclass.Is(cause, errclass.AccessDenied) {
		return cause
	}
	return c.fail(errclass.Terminal, errclass.AccessDenied, "re-create", "its volume %s cannot be bound to it again: %w", name, cause).
		WithHint(fmt.Sprintf(`grant the ServiceAccount get and patch on persistentvolumes, or free it by hand: kubectl patch pv %s --type merge -p '{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}', then re-create the claim from its before-image`, name))
}

// volumeLoss says what would be lost with a claim, and what is worth a warning.
func (c Change) volumeLoss(ctx context.Context, claim *unstructured.Unstructured) (lost, warning string, err error) {
	name := c.volumeName(claim)
	if name == "" {
		return "", "", nil
	}
	volume, err := c.readVolume(ctx, name)
	switch {
	case errclass.Is(err, errclass.AccessDenied):
		return fmt.Sprintf("whether its volume %s outlives it cannot be told, because the ServiceAccount may not get persistentvolumes", name), "", nil
	case err != nil:
		return "", "", err
	case volume == nil:
		return "", fmt.Sprintf("its volume %s does not exist", name), nil
	}
	if policy := reclaimPolicy(volume); policy != kinds.Retain {
		return fmt.Sprintf("the reclaim policy of its volume %s is %s, so its data would be lost", name, policy), "", nil
	}
	return "", fmt.Sprintf("its volume %[1]s is retained; to bind it again, a rollback needs patch on persistentvolumes, and no other claim can bind it before kubectl patch pv %[1]s --type merge -p '{\"spec\":{\"claimRef\":null}}'", name), nil
}

// lostVolume says that the volume of a re-created claim is gone.
func (c Change) lostVolume(ctx context.Context, claim *unstructured.Unstructured) ([]string, error) {
	name := c.volumeName(claim)
	if name == "" {
		return nil, nil
	}
	volume, err := c.readVolume(ctx, name)
	switch {
	case errclass.Is(err, errclass.AccessDenied):
		return nil, nil
	case err != nil:
		return nil, err
	case volume == nil || volume.GetDeletionTimestamp() != nil:
		return []string{"its volume " + name + " is gone, and the data with it: the claim waits for a volume of that name"}, nil
	default:
		return nil, nil
	}
}

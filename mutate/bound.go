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

// provisionedBy is what a provisioner writes to a volume that it has made for a claim.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// boundByController is what the control plane writes to a volume whose claimRef it has
// set itself. Where it is missing, the one who made the volume has reserved it.
const boundByController = "pv.kubernetes.io/bound-by-controller"

// admitUnused refuses to delete an object that this change made, where something that
// was there before would go with it, or that others have come to use: a claim takes its
// volume, and others may have bound a volume.
func (c Change) admitUnused(ctx context.Context, live *unstructured.Unstructured) error {
	switch c.Ref.GVK.GroupKind() {
	case kinds.Claim:
		return c.admitVolume(ctx, live)
	case kinds.Volume:
		return c.admitUnclaimed(ctx, live)
	case kinds.Service:
		return c.admitEndpoints(ctx, live)
	default:
		return c.admitContent(ctx, live)
	}
}

// admitVolume refuses to delete a claim whose volume was not made for it and would be
// destroyed with it. One that is retained can be given back, if the ServiceAccount may
// do so: that is tried first.
func (c Change) admitVolume(ctx context.Context, claim *unstructured.Unstructured) error {
	name := c.volumeName(claim)
	if name == "" || name == madeFor(claim.GetUID()) {
		return nil
	}
	volume, err := c.readVolume(ctx, name)
	if errclass.Is(err, errclass.AccessDenied) {
		return c.fail(errclass.Terminal, errclass.AccessDenied, "delete", "whether its volume %s was there before cannot be told: the ServiceAccount may not get persistentvolumes", name).
			WithHint("grant the ServiceAccount get, list and patch on persistentvolumes, or delete the claim by hand if the volume may go")
	}
	if err != nil || volume == nil || volume.GetDeletionTimestamp() != nil {
		return err
	}
	if provisioned(volume) && !olderThan(volume, claim) {
		return nil
	}
	if policy := reclaimPolicy(volume); policy != kinds.Retain {
		return c.fail(errclass.Terminal, errclass.Irreversible, "delete", "its volume %s, which was not made for it, would be destroyed with it: its reclaim policy is %s", name, policy).
			WithHint(fmt.Sprintf(`it is kept; to keep the volume, kubectl patch pv %s --type merge -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}', then delete the claim by hand`, name))
	}
	body, err := c.freed(volume)
	if err != nil {
		return err
	}
	cluster := c.Environment.Cluster.Resource(kinds.Volumes)
	_, err = cluster.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: c.Names.Manager, DryRun: dryRun(true)})
	if err == nil {
		// It has to be found when the claim is gone.
		_, err = cluster.List(ctx, metav1.ListOptions{Limit: 1})
	}
	if err = errclass.Wrap(err, "free", "PersistentVolume "+name, false); errclass.Is(err, errclass.AccessDenied) {
		return c.fail(errclass.Terminal, errclass.AccessDenied, "delete", "its volume %s could not be bound again once it is gone: the ServiceAccount may not list and patch persistentvolumes", name).
			WithHint(fmt.Sprintf(`grant the ServiceAccount get, list and patch on persistentvolumes, or delete the claim by hand and free it: kubectl patch pv %s --type merge -p '{"spec":{"claimRef":null}}'`, name))
	}
	return err
}

// madeFor is what provisioners call the volume of a claim.
func madeFor(claim types.UID) string { return "pvc-" + string(claim) }

func provisioned(volume *unstructured.Unstructured) bool {
	return volume.GetAnnotations()[provisionedBy] != ""
}

func reclaimPolicy(volume *unstructured.Unstructured) string {
	policy, _, _ := unstructured.NestedString(volume.Object, "spec", "persistentVolumeReclaimPolicy")
	return policy
}

// olderThan compares by the clock of the API server, which counts seconds.
func olderThan(a, b metav1.Object) bool {
	was, is := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return was.Before(&is)
}

// freed is the patch that lets a volume be bound by the next claim, as it was before.
func (c Change) freed(volume *unstructured.Unstructured) ([]byte, error) {
	patch := map[string]any{"spec": map[string]any{"claimRef": map[string]any{"uid": nil, "resourceVersion": nil}}}
	if volume.GetAnnotations()[boundByController] != "" {
		patch = map[string]any{
			"spec":     map[string]any{"claimRef": nil},
			"metadata": map[string]any{"annotations": map[string]any{boundByController: nil}},
		}
	}
	return conditional(patch, volume)
}

// giveVolumeBack frees the volume that a claim had bound which this change made and which
// is gone, if the volume was there before. It may be called again after any outcome.
func (c Change) giveVolumeBack(ctx context.Context, e Effect) error {
	if c.Ref.GVK.GroupKind() != kinds.Claim || e.Created == "" {
		return nil
	}
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := c.Environment.Cluster.Resource(kinds.Volumes).List(ctx, options)
		if err = errclass.Wrap(err, "list", "the PersistentVolumes", false); errclass.Is(err, errclass.AccessDenied) || errclass.Is(err, errclass.NotFound) {
			return nil // It was asked for before the claim was deleted, where it matters.
		}
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := c.giveBack(ctx, e, &list.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func (c Change) giveBack(ctx context.Context, e Effect, volume *unstructured.Unstructured) error {
	held := claimRef(volume)["uid"] == string(e.Created)
	fresh := provisioned(volume) && (volume.GetName() == madeFor(e.Created) || !volume.GetCreationTimestamp().Time.Before(e.Began))
	if !held || fresh || volume.GetDeletionTimestamp() != nil || reclaimPolicy(volume) != kinds.Retain {
		return nil
	}
	body, err := c.freed(volume)
	if err != nil {
		return err
	}
	if err := c.Fences.confirm(ctx, false); err != nil {
		return err
	}
	_, err = c.Environment.Cluster.Resource(kinds.Volumes).Patch(ctx, volume.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: c.Names.Manager})
	if err = errclass.Wrap(err, "free", "PersistentVolume "+volume.GetName(), false); stale(err) {
		return c.fail(errclass.Retryable, errclass.StaleVersion, "delete", "its volume %s changes while it is released", volume.GetName())
	}
	if errclass.Is(err, errclass.AccessDenied) {
		return c.fail(errclass.Terminal, errclass.AccessDenied, "delete", "it is gone, and its volume %s cannot be bound again: the ServiceAccount may not patch persistentvolumes", volume.GetName()).
			WithHint(fmt.Sprintf(`free it by hand: kubectl patch pv %s --type merge -p '{"spec":{"claimRef":null}}'`, volume.GetName()))
	}
	return err
}

// admitUnclaimed refuses to delete a volume that a claim of others has bound. What this
// Transaction claimed is gone by now; of an undo that is prepared, it will be.
func (c Change) admitUnclaimed(ctx context.Context, volume *unstructured.Unstructured) error {
	holder := claimRef(volume)
	if holder["uid"] == "" || c.Options.Inverts && c.Environment.deletes(kinds.Claim, holder["namespace"], holder["name"]) {
		return nil
	}
	claim, err := c.claimOf(ctx, holder)
	switch {
	case errclass.Is(err, errclass.AccessDenied):
		if phase, _, _ := unstructured.NestedString(volume.Object, "status", "phase"); phase != "Bound" {
			return nil
		}
	case err != nil || claim == nil:
		return err
	}
	return c.fail(errclass.Conflict, errclass.NotEmpty, "delete", "PersistentVolumeClaim %s/%s, which this Transaction did not make, has bound it", holder["namespace"], holder["name"]).
		WithHint("it is kept; delete the claim and then the volume by hand if they are not wanted")
}

// claimOf gets the claim that has bound a volume, by its claimRef; nil if it is gone.
func (c Change) claimOf(ctx context.Context, holder map[string]string) (*unstructured.Unstructured, error) {
	claim, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
		return c.Environment.Cluster.Resource(kinds.Claims).Namespace(holder["namespace"]).Get(ctx, holder["name"], metav1.GetOptions{})
	})
	switch {
	case errclass.Is(err, errclass.NotFound), errclass.Is(err, errclass.NamespaceNotFound):
		return nil, nil
	case err != nil:
		return nil, errclass.Wrap(err, "read", "PersistentVolumeClaim "+holder["namespace"]+"/"+holder["name"], false)
	case string(claim.GetUID()) != holder["uid"]:
		return nil, nil
	}
	return claim, nil
}

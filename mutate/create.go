package mutate

import (
	"context"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/fault"
	"janus.io/janus/snapshot"
)

// createStrategy makes an object that must not exist, and deletes it again if it
// is still its own.
type createStrategy struct{}

func (createStrategy) Admit(c Change, before *unstructured.Unstructured) error {
	if before == nil {
		return nil
	}
	if err := c.admitAlive(before, "create"); err != nil {
		return err
	}
	return c.exists("create")
}

func (c Change) exists(op string) error {
	return c.fail(fault.Conflict, fault.AlreadyExists, op, "it exists already").
		WithHint("use Patch or Update to change it; nothing of it was touched")
}

func (createStrategy) Try(ctx context.Context, c Change, _ Baseline) (*unstructured.Unstructured, error) {
	if c.Deferred {
		return nil, nil
	}
	after, err := c.post(ctx, true)
	return after, c.wrap(err, "dry-run the creation of")
}

func (createStrategy) Do(ctx context.Context, c Change, _ Baseline) error {
	_, err := c.post(ctx, false)
	switch {
	case err == nil:
		return nil
	case fault.Is(err, fault.AlreadyExists):
		return c.whose(ctx)
	case c.Deferred && (fault.Is(err, fault.NotFound) || fault.Is(err, fault.NamespaceNotFound)):
		return c.fail(fault.Retryable, fault.KindNotFound, "create", "the API server does not serve its kind or namespace yet")
	default:
		return c.wrap(err, "create")
	}
}

// whose finds out whether the object that is there came from an earlier attempt.
func (c Change) whose(ctx context.Context) error {
	live, err := Read(ctx, c)
	switch {
	case err != nil:
		return err
	case live == nil:
		return c.fail(fault.Retryable, fault.StaleVersion, "create", "it existed a moment ago and is gone now")
	case c.made(live):
		return nil
	default:
		return c.exists("create")
	}
}

// made reports whether this change made the object: its manager outlives others
// changing every value, and the marker tells even where no field is tracked.
func (c Change) made(live *unstructured.Unstructured) bool {
	return c.owns(live) || live.GetAnnotations()[MarkerAnnotation] == c.Marker
}

func (c Change) post(ctx context.Context, dry bool) (*unstructured.Unstructured, error) {
	body := c.body(Version{})
	c.mark(body)
	return c.Resource.Create(ctx, body, metav1.CreateOptions{
		FieldManager: c.Manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(dry),
	})
}

// mark adds the marker to the annotations. Annotations that are not text stay as
// they are: the API server refuses them, and dropping them would hide that.
func (c Change) mark(body *unstructured.Unstructured) {
	meta, _ := body.Object["metadata"].(map[string]any)
	switch annotations := meta["annotations"].(type) {
	case nil:
		meta["annotations"] = map[string]any{MarkerAnnotation: c.Marker}
	case map[string]any:
		annotations[MarkerAnnotation] = c.Marker
	}
}

func (createStrategy) Observe(ctx context.Context, c Change, _ snapshot.Record) (Finding, error) {
	live, err := Read(ctx, c)
	if err != nil || live == nil || !c.made(live) {
		return NotApplied, err
	}
	return Applied, nil
}

func (createStrategy) Undo(ctx context.Context, c Change, _ snapshot.Record) error {
	for range attempts {
		live, err := Read(ctx, c)
		switch {
		case err != nil:
			return err
		case live == nil || !c.made(live):
			return nil
		case live.GetDeletionTimestamp() != nil:
			return c.awaitGone(live)
		}
		if others := c.othersOn(live); len(others) > 0 {
			return c.fail(fault.Conflict, fault.FieldConflict, "delete", "others have written it since it was created: %s", strings.Join(others, ", ")).
				WithHint("it is kept; delete it by hand if it is not wanted")
		}
		if err := c.admitEmpty(ctx, live); err != nil {
			return err
		}
		if err := c.remove(ctx, VersionOf(live), false); err != nil && !stale(err) {
			return c.wrap(err, "delete")
		}
	}
	return c.fail(fault.Retryable, fault.StaleVersion, "delete", "it changes faster than it can be deleted")
}

// admitEmpty refuses to delete a Namespace or a CRD that this change made and that
// others have put objects into. What this Transaction put there is taken back
// before. Nothing can keep somebody from adding an object after the look.
func (c Change) admitEmpty(ctx context.Context, live *unstructured.Unstructured) error {
	if c.Contents == nil {
		return nil
	}
	found, err := c.Contents(ctx, live)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return nil
	}
	return c.fail(fault.Conflict, fault.NotEmpty, "delete", "it holds objects that this Transaction did not make: %s", strings.Join(found, ", ")).
		WithHint("it is kept; delete it by hand if they are not wanted")
}

// othersOn names who else has written an object that this change made, the
// control plane and writers of the status aside.
func (c Change) othersOn(live *unstructured.Unstructured) []string {
	seen := map[string]bool{}
	for _, e := range live.GetManagedFields() {
		if !c.ours(e.Manager) && e.Subresource != "status" && !controlPlane[e.Manager] {
			seen[e.Manager] = true
		}
	}
	var out []string
	for manager := range seen {
		out = append(out, manager)
	}
	sort.Strings(out)
	return out
}

// controlPlane are the managers of Kubernetes' own components, which complete
// objects soon after they are created.
var controlPlane = map[string]bool{
	"kube-apiserver": true, "kube-controller-manager": true, "kube-scheduler": true, "kubelet": true,
	"cloud-controller-manager": true, "clusterrole-aggregation-controller": true,
}

// remove deletes exactly the object that was seen.
func (c Change) remove(ctx context.Context, seen Version, dry bool) error {
	background := metav1.DeletePropagationBackground
	return c.Resource.Delete(ctx, c.Ref.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion},
		PropagationPolicy: &background, DryRun: dryRun(dry),
	})
}

// awaitGone is the wait for the finalizers of an object that is being deleted.
func (c Change) awaitGone(live *unstructured.Unstructured) error {
	return c.fail(fault.Retryable, fault.Terminating, "delete", "it is being deleted%s", waitsFor(live))
}

func (createStrategy) Verbs() (change, compensation []string) {
	return []string{"get", "create"}, []string{"delete"}
}

package mutate

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/fault"
	"janus.io/janus/snapshot"
)

// rehearse finds out, without effect, whether the ServiceAccount could take a
// deletion back where its verbs do not tell.
func (c Change) rehearse(ctx context.Context, before *unstructured.Unstructured) error {
	if err := c.rehearseRole(ctx, before); err != nil {
		return err
	}
	return c.rehearseStatus(ctx, before)
}

// rehearseRole dry-runs the re-creation of a role or a binding under another name.
// Nobody may create one that grants more than they have; deleting one is not
// guarded so.
func (c Change) rehearseRole(ctx context.Context, before *unstructured.Unstructured) error {
	if c.Ref.GVK.Group != "rbac.authorization.k8s.io" {
		return nil
	}
	again := snapshot.ForCreate(before)
	again.SetName("janus-rehearsal-" + string(before.GetUID()))
	_, err := c.Resource.Create(ctx, again, metav1.CreateOptions{FieldManager: c.Manager, DryRun: dryRun(true)})
	if !fault.Is(err, fault.AccessDenied) {
		return c.wrap(err, "rehearse the re-creation of")
	}
	verb := "escalate"
	if again.GetKind() == "RoleBinding" || again.GetKind() == "ClusterRoleBinding" {
		verb = "bind"
	}
	return c.fail(fault.Terminal, fault.AccessDenied, "prepare the deletion of",
		"the deletion could not be taken back: the ServiceAccount may not create it: %w", c.wrap(err, "rehearse the re-creation of")).
		WithHint(fmt.Sprintf("grant the ServiceAccount every right that is in it, or %s on the role", verb))
}

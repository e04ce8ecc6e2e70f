package mutate

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
	"janus.io/janus/snapshot"
)

// rehearseCreation dry-runs the creation of an object under another name: what was valid
// when it was made may not be any more. A field that is refused is for good. Any other
// refusal may be because of the name, or because the object is still there, as with a
// quota: then there is a warning. Roles are rehearsed apart, and of kinds whose deletion
// loses something anyway that is said already.
func (c Change) rehearseCreation(ctx context.Context, before *unstructured.Unstructured) ([]string, error) {
	kind := c.Ref.GVK.GroupKind()
	if special := kinds.Of(kind); special.Loss != nil || special.NamedByContent || kind.Group == kinds.RBACGroup {
		return nil, nil
	}
	_, err := c.createAgain(ctx, before)
	if err == nil {
		return nil, nil
	}
	unfit := refusesAField(err)
	err = c.wrap(err, "rehearse the re-creation of")
	switch class := errclass.ClassOf(err); {
	case class == errclass.Retryable, class == errclass.Unknown:
		return nil, err
	case unfit && !c.Options.AcceptLoss:
		return nil, c.irreversible("delete", fmt.Sprintf("the deletion could not be rolled back: it could not be created again as it is: %s", err))
	default:
		return c.warn("it is not sure that a rollback could create it again: " + err.Error()), nil
	}
}

// refusesAField reports an answer that complains about a field other than the name. What
// complains about the object as a whole may mean its name.
func refusesAField(err error) bool { return len(refusedFields(err)) > 0 }

// refusedFields are those fields.
func refusedFields(err error) []string {
	status, ok := errclass.Status(err)
	if !ok || status.Details == nil || status.Code != http.StatusUnprocessableEntity {
		return nil
	}
	var out []string
	for _, cause := range status.Details.Causes {
		if cause.Field != "" && cause.Field != "<nil>" && !strings.HasPrefix(cause.Field, "metadata") {
			out = append(out, cause.Field)
		}
	}
	return out
}

// createAgain dry-runs the creation of an object under another name, without what only
// one object can have.
func (c Change) createAgain(ctx context.Context, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	again := snapshot.ForCreate(before)
	again.SetName("janus-rehearsal-" + string(before.GetUID()))
	if c.Ref.GVK.GroupKind() == kinds.Service {
		withoutAllocations(again.Object)
	}
	_, err := c.client().Create(ctx, again, metav1.CreateOptions{
		FieldManager: c.Names.Manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(true),
	})
	return again, err
}

// withoutAllocations takes off a Service the addresses and ports that it was given.
func withoutAllocations(service map[string]any) {
	spec, _ := service["spec"].(map[string]any)
	if spec["clusterIP"] != corev1.ClusterIPNone {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "nodePort")
		}
	}
}

// rehearse finds out, without effect, whether the ServiceAccount could undo a
// deletion where its verbs do not tell.
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
	if c.Ref.GVK.Group != kinds.RBACGroup {
		return nil
	}
	again, err := c.createAgain(ctx, before)
	if !errclass.Is(err, errclass.AccessDenied) {
		return c.wrap(err, "rehearse the re-creation of")
	}
	verb := "escalate"
	if again.GetKind() == "RoleBinding" || again.GetKind() == "ClusterRoleBinding" {
		verb = "bind"
	}
	return c.fail(errclass.Terminal, errclass.AccessDenied, "prepare the deletion of",
		"the deletion could not be rolled back: the ServiceAccount may not create it: %w", c.wrap(err, "rehearse the re-creation of")).
		WithHint(fmt.Sprintf("grant the ServiceAccount every right that is in it, or %s on the role", verb))
}

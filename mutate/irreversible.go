package mutate

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
	"janus.io/janus/snapshot"
)

// admitLoss refuses a deletion that could not be rolled back completely, unless
// the change accepts the loss; then it warns. A Namespace, and the like, is
// refused whether it exists or not, so that the answer does not depend on the moment.
func (c Change) admitLoss(ctx context.Context, before *unstructured.Unstructured) ([]string, error) {
	if c.isAccount() {
		return c.admitOwnEnd()
	}
	lost, warning, err := c.losses(ctx, before)
	switch {
	case err != nil:
		return nil, err
	case lost != "" && !c.Options.AcceptLoss:
		return nil, c.irreversible("delete", "the deletion of a "+c.Ref.GVK.Kind+" cannot be rolled back: "+lost)
	case lost != "":
		return c.warn("a rollback cannot undo its deletion: " + lost), nil
	case warning != "":
		return c.warn(warning), nil
	default:
		return nil, nil
	}
}

func (c Change) irreversible(op, why string) error {
	return c.fail(errclass.Terminal, errclass.Irreversible, op, "%s", why).
		WithHint("set acceptLoss: true on the change to make it all the same")
}

func (c Change) warn(text string) []string { return []string{c.Ref.String() + ": " + text} }

// losses says what would be lost with the target, and what is worth a warning.
func (c Change) losses(ctx context.Context, before *unstructured.Unstructured) (lost, warning string, err error) {
	kind := c.Ref.GVK.GroupKind()
	if loss := kinds.Of(kind).Loss; loss != nil {
		return loss.Ahead, "", nil
	}
	switch {
	case kind == kinds.ServiceAccount && c.Ref.Name == "default":
		return "the control plane re-creates it at once, and that object would be in the way", "", nil
	case before == nil:
		return "", "", nil
	case kind == kinds.ServiceAccount:
		return c.tokenLoss(ctx, before)
	case c.takesClaims(before):
		return "its PersistentVolumeClaims would be deleted with it (spec.persistentVolumeClaimRetentionPolicy)", "", nil
	case kind == kinds.Claim:
		return c.volumeLoss(ctx, before)
	case kind == kinds.Service:
		warning, err = c.endpointsWarning(ctx, before)
		return "", warning, err
	}
	if lost, err = c.outsideLoss(ctx, before); lost != "" || err != nil {
		return lost, "", err
	}
	return c.ownedLoss(ctx, before)
}

// takesClaims reports whether a StatefulSet takes its claims, and so its data, along.
func (c Change) takesClaims(before *unstructured.Unstructured) bool {
	when, _, _ := unstructured.NestedString(before.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	return c.Ref.GVK.GroupKind() == kinds.StatefulSet && when == "Delete" &&
		c.Options.propagation() != metav1.DeletePropagationOrphan
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// tokenLoss looks for the token Secrets of a ServiceAccount, which the control plane
// deletes with it.
func (c Change) tokenLoss(ctx context.Context, account *unstructured.Unstructured) (lost, warning string, err error) {
	const invalid = "tokens issued to it, those of running Pods too, are invalid once it is deleted, and stay so"
	list, err := c.Environment.Cluster.Resource(secrets).Namespace(account.GetNamespace()).List(ctx,
		metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken)})
	if errclass.Is(err, errclass.AccessDenied) {
		return "", invalid + "; whether it has token Secrets, which would be lost, cannot be told: the ServiceAccount may not list secrets", nil
	}
	if err != nil {
		return "", "", errclass.Wrap(err, "list", "the token Secrets of "+c.Ref.String(), true)
	}
	for _, secret := range list.Items {
		if secret.GetAnnotations()[corev1.ServiceAccountNameKey] == account.GetName() {
			return fmt.Sprintf("the control plane would delete its token Secret %s with it", secret.GetName()), "", nil
		}
	}
	return "", invalid, nil
}

// lost says what a re-created object lacks.
func (c Change) lost(ctx context.Context, before *unstructured.Unstructured) ([]string, error) {
	kind := c.Ref.GVK.GroupKind()
	if loss := kinds.Of(kind).Loss; loss != nil {
		return []string{loss.After}, nil
	}
	switch {
	case kind == kinds.ServiceAccount:
		return []string{"tokens issued to it before are invalid"}, nil
	case kind == kinds.Pod && metav1.GetControllerOf(before) == nil:
		return []string{newPod(before)}, nil
	case kind == kinds.Claim:
		return c.lostVolume(ctx, before)
	default:
		return c.lostOutside(ctx, before)
	}
}

// newPod says what of a re-created Pod is another than before.
func newPod(before *unstructured.Unstructured) string {
	out := "it is a new Pod, and starts over"
	var fields []string
	for _, path := range snapshot.FromNode(before) {
		fields = append(fields, "."+strings.Join(path, "."))
	}
	if len(fields) > 0 {
		out += ", on a Node that the scheduler chooses: " + strings.Join(fields, ", ") + " may differ"
	}
	return out
}

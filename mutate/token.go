package mutate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate/kinds"
)

// admitToken refuses to re-create a token Secret whose ServiceAccount is another by
// now: the control plane would delete it within seconds, and its token is not valid
// any more. A ServiceAccount that cannot be read is taken to be there.
func (c Change) admitToken(ctx context.Context, secret *unstructured.Unstructured) error {
	if !isTokenSecret(c.Ref.GVK.GroupKind(), secret) {
		return nil
	}
	name, uid := secret.GetAnnotations()[corev1.ServiceAccountNameKey], secret.GetAnnotations()[corev1.ServiceAccountUIDKey]
	account, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
		return c.Environment.Cluster.Resource(kinds.ServiceAccounts).Namespace(secret.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case errclass.Is(err, errclass.AccessDenied):
		return nil
	case err != nil && !errclass.Is(err, errclass.NotFound):
		return errclass.Wrap(err, "read", "ServiceAccount "+secret.GetNamespace()+"/"+name, false)
	case err == nil && (uid == "" || string(account.GetUID()) == uid):
		return nil
	}
	return c.fail(errclass.Terminal, errclass.OwnerGone, "re-create",
		"its ServiceAccount %s was deleted or re-created: the control plane would delete the Secret at once, and its token is invalid", name).
		WithHint("create a new token Secret by hand")
}

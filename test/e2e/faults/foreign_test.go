package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/snapshot"
	"janus.io/janus/test/harness"
)

// somebody is the client that writes the targets of Transactions while these run.
const somebody = "somebody"

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (r *run) merge(ctx context.Context, of target, patch string) error {
	client, err := r.client(of.kind, of.Namespace)
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, of.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: somebody})
	return ignoreMissing(err)
}

// foreignWrite writes a field that Janus does not.
func foreignWrite(ctx context.Context, r *run, of target) error {
	return r.merge(ctx, of, `{"metadata":{"annotations":{"somebody":"was-here"}}}`)
}

// foreignField writes a field that Janus writes too.
func foreignField(ctx context.Context, r *run, of target) error {
	switch of.kind.Kind {
	case "ConfigMap":
		return r.merge(ctx, of, `{"data":{"version":"foreign"}}`)
	case "Secret":
		return r.merge(ctx, of, `{"data":{"key":"Zm9yZWlnbg=="}}`)
	case "Widget":
		return r.merge(ctx, of, `{"spec":{"size":9}}`)
	case "Service":
		return r.merge(ctx, of, `{"spec":{"ports":[{"name":"http","port":80,"targetPort":9090,"protocol":"TCP"}]}}`)
	default:
		return r.merge(ctx, of, `{"metadata":{"labels":{"version":"foreign"}}}`)
	}
}

func foreignDelete(ctx context.Context, r *run, of target) error {
	client, err := r.client(of.kind, of.Namespace)
	if err != nil {
		return err
	}
	return ignoreMissing(client.Delete(ctx, of.Name, metav1.DeleteOptions{}))
}

// foreignRecreate puts another object in place of a target.
func foreignRecreate(ctx context.Context, r *run, of target) error {
	client, err := r.client(of.kind, of.Namespace)
	if err != nil {
		return err
	}
	live, err := client.Get(ctx, of.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := client.Delete(ctx, of.Name, metav1.DeleteOptions{}); err != nil {
		return ignoreMissing(err)
	}
	other := snapshot.ForCreate(live)
	other.SetFinalizers(nil)
	other.SetAnnotations(map[string]string{"somebody": "made-it"})
	unstructured.RemoveNestedField(other.Object, "data", "version")
	_, err = client.Create(ctx, other, metav1.CreateOptions{FieldManager: somebody})
	if apierrors.IsAlreadyExists(err) { // it waits for its finalizers
		return nil
	}
	return err
}

func deleteAccount(ctx context.Context, r *run, _ target) error {
	return ignoreMissing(r.Kube.CoreV1().ServiceAccounts(r.at.namespace).Delete(ctx, account, metav1.DeleteOptions{}))
}

// deleteRights takes the rights away, and waits until they do not count any more.
func deleteRights(ctx context.Context, r *run, _ target) error {
	rbac := r.Kube.RbacV1()
	err := rbac.RoleBindings(r.at.namespace).Delete(ctx, r.at.namespace, metav1.DeleteOptions{})
	if r.Rights == "cluster" {
		err = rbac.ClusterRoleBindings().Delete(ctx, r.at.namespace, metav1.DeleteOptions{})
	}
	if ignoreMissing(err) != nil {
		return err
	}
	return harness.Poll(ctx, func(ctx context.Context) (bool, error) {
		entitled, err := r.entitled(ctx, r.at)
		return !entitled, err
	})
}

// entitled asks whether the ServiceAccount of a place may do anything there.
func (w *world) entitled(ctx context.Context, at place) (bool, error) {
	review, err := w.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authzv1.SubjectAccessReview{
		Spec: authzv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + at.namespace + ":" + account,
			ResourceAttributes: &authzv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*", Namespace: at.namespace},
		},
	}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed, err
}

// fillQuota leaves no room for further ConfigMaps, Secrets and Services. The status
// is written here, so that it counts at once.
func fillQuota(ctx context.Context, r *run, _ target) error {
	hard := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"count/configmaps", "count/secrets", "count/services"} {
		hard[name] = resource.MustParse("0")
	}
	quotas := r.Kube.CoreV1().ResourceQuotas(r.at.namespace)
	quota, err := quotas.Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "full"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: hard}
	if _, err = quotas.UpdateStatus(ctx, quota, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return err
	}
	// The admission plugin looks into a cache of its own.
	return harness.Poll(ctx, func(ctx context.Context) (bool, error) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("probe-%d", time.Now().UnixNano())}}
		_, err := r.Kube.CoreV1().ConfigMaps(r.at.namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err), nil
	})
}

// edit sets what may be changed in the spec of the Transaction.
func edit(field, value string) func(context.Context, *run, target) error {
	return func(ctx context.Context, r *run, _ target) error {
		patch := fmt.Appendf(nil, `{"spec": {%q: %s}}`, field, value)
		made, err := r.Dynamic.Resource(api.Resource).Namespace(r.at.namespace).
			Patch(ctx, transaction, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: somebody})
		if err == nil {
			r.edited(made)
		}
		return ignoreMissing(err)
	}
}

// edited notes that the end of a Transaction is not known from what was before an edit.
func (r *run) edited(txn *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.generations == nil {
		r.generations = map[types.UID]int64{}
	}
	r.generations[txn.GetUID()] = max(r.generations[txn.GetUID()], txn.GetGeneration())
}

func (r *run) generation(uid types.UID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generations[uid]
}

// goOn ends what edit has begun: who was suspended goes on, and who was stopped is
// cancelled.
func (r *run) goOn(ctx context.Context) error {
	var err error
	if r.plan.has("suspended") {
		err = edit("suspend", "false")(ctx, r, target{})
	}
	if r.plan.has("stopped-then-cancelled") {
		err = errors.Join(err, edit("cancel", `"Rollback"`)(ctx, r, target{}))
	}
	return err
}

func deleteTransaction(how metav1.DeletionPropagation) func(context.Context, *run, target) error {
	return func(ctx context.Context, r *run, _ target) error {
		return ignoreMissing(r.Dynamic.Resource(api.Resource).Namespace(r.at.namespace).
			Delete(ctx, transaction, metav1.DeleteOptions{PropagationPolicy: &how}))
	}
}

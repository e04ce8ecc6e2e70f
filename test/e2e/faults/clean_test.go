package faults

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reuse is how many runs a place serves.
const reuse = 25

// leave cleans the place for the next run. One that cannot be cleaned at once is
// left as it is: to delete a namespace costs the cluster more than to keep it.
func (r *run) leave(out *result) {
	ctx := context.WithoutCancel(r.ctx)
	r.all.Wait()
	// Sources may have been made again after the history was read.
	clean := r.clean(ctx, out) && len(out.failures) == 0 && !r.altered() && !r.plan.has("sources-")
	r.at.used++
	if clean && r.at.used < reuse {
		r.giveBack(r.Rights, r.at)
		return
	}
	r.watcher.Forget(r.at.namespace, r.at.other)
	r.hub.forget(r.at.namespace)
}

// clean deletes everything that the run has made, and reports whether nothing of it
// is left.
func (r *run) clean(ctx context.Context, out *result) bool {
	clean := len(out.history) > 0
	now, background := int64(0), metav1.DeletePropagationBackground
	for ref, v := range out.live() {
		if !disposable[ref.Resource] || ref.Name == r.at.namespace || ref.Name == r.at.other || ref.Namespace == "" && !strings.Contains(ref.Name, r.at.run) {
			continue
		}
		client, err := r.client(v.Object.GroupVersionKind(), ref.Namespace)
		if err == nil {
			err = client.Delete(ctx, ref.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background})
		}
		clean = clean && (err == nil || apierrors.IsNotFound(err)) && len(v.Object.GetFinalizers()) == 0
	}
	return clean
}

// disposable are the resources of which a place has nothing of its own.
var disposable = map[string]bool{
	"transactions.backup.janus.io": true, "configmaps": true, "secrets": true, "services": true, "podtemplates": true,
	"leases.coordination.k8s.io": true, "deployments.apps": true, "jobs.batch": true, "controllerrevisions.apps": true, "widgets.faults.example.com": true,
	"clusterroles.rbac.authorization.k8s.io": true, "roles.rbac.authorization.k8s.io": true,
	"rolebindings.rbac.authorization.k8s.io": true, "namespaces": true,
	"customresourcedefinitions.apiextensions.k8s.io": true,
}

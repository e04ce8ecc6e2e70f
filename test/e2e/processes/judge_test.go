package processes

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// judge holds what was seen and what is there against the guarantees.
func (w *world) judge() {
	w.t.Helper()
	h := w.history
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range w.load.all() {
		last := w.end(s)
		w.counts.add("Transactions "+string(last.Phase), 1)
		if c := meta.FindStatusCondition(last.Conditions, api.ConditionReady); c != nil && last.Phase != api.PhaseCommitted {
			w.counts.add(fmt.Sprintf("Transactions %s: %s", last.Phase, c.Reason), 1)
			assert.NotEqual(w.t, errclass.AccessDenied, c.Reason, "%s: its ServiceAccount has every right that it needs: %s", s.name, c.Message)
		}
		if s.refused {
			assert.NotEqual(w.t, api.PhaseCommitted, last.Phase, "%s was refused", s.name)
		}
		w.judgeJournal(s)
		for _, t := range s.targets {
			w.judgeTarget(s, t, last)
		}
	}
	for _, hot := range hots {
		w.judgeHot(hot)
	}
	w.judgeHistory()
	w.judgeForeign()
	w.judgeLeases()
	w.judgeAudit()
	w.judgeSecrecy()
}

// end is the last status of a Transaction.
func (w *world) end(s *saga) api.TransactionStatus {
	w.t.Helper()
	seen := w.history.txns[s.name]
	require.NotEmpty(w.t, seen, "%s was never seen", s.name)
	last := seen[len(seen)-1]
	assert.True(w.t, last.status.Phase.Terminal(), "%s has not ended", s.name)
	return last.status
}

// describe says how a saga has ended, for failures.
func (w *world) describe(s *saga) string {
	return s.name + " " + harness.Describe(&api.Transaction{Status: w.end(s)})
}

// left lists what should not be there once every Transaction has ended: Leases,
// finalizers, and before-images that are not kept on purpose.
func (w *world) left(ctx context.Context) []string {
	var out []string
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, namespace := range []string{w.namespace, system} {
		list, err := w.Kube.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return []string{err.Error()}
		}
		for _, lease := range list.Items {
			holder := ""
			if lease.Spec.HolderIdentity != nil {
				holder = *lease.Spec.HolderIdentity
			}
			// The system's namespace has locks of other tests too.
			if strings.HasPrefix(lease.Name, "janus-lock-") && (namespace == w.namespace || strings.HasPrefix(holder, w.namespace+"/")) {
				note("Lease %s/%s of %s", namespace, lease.Name, holder)
			}
		}
	}
	kept := map[string]bool{}
	remembered, err := w.remembered(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	txns, err := w.Dynamic.Resource(api.Resource).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	for _, txn := range txns.Items {
		if len(txn.GetFinalizers()) > 0 {
			note("finalizers of %s: %v", txn.GetName(), txn.GetFinalizers())
		}
		for _, ref := range w.imagesOf(txn.Object, remembered) {
			kept[ref] = true
		}
	}
	for _, k := range []kind{configMap, secret} {
		images, err := w.Dynamic.Resource(k.resource()).Namespace(w.namespace).
			List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=janus"})
		if err != nil {
			return []string{err.Error()}
		}
		for _, image := range images.Items {
			if ref := k.Kind + "/" + image.GetName(); !kept[ref] {
				note("before-image %s", ref)
			}
			if len(image.GetFinalizers()) > 0 {
				note("finalizers of before-image %s: %v", image.GetName(), image.GetFinalizers())
			}
		}
	}
	return out
}

// imagesOf lists the before-images that a Transaction keeps.
func (w *world) imagesOf(txn map[string]any, remembered map[int64]types.UID) []string {
	var typed api.Transaction
	if err := decode(txn, &typed); err != nil {
		w.t.Errorf("decode a Transaction: %v", err)
	}
	if typed.Status.RollbackRef == nil || typed.Status.Phase == api.PhaseCommitted && remembered[typed.Status.Revision] != typed.UID {
		return nil
	}
	return typed.Status.RollbackRef.Objects
}

package faults

import (
	"fmt"
	"slices"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/test/harness"
)

// earlier is the name of the Transaction that has committed before, and is remembered, and since that
// of one that has committed after it.
const (
	earlier = "earlier"
	since   = earlier + "-since"
)

var revisions = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}

// commitEarlier has Janus carry out Transactions before faults begin.
func (r *run) commitEarlier() error {
	if len(r.Earlier) == 0 {
		return nil
	}
	with, ends := map[string]any{"revisionHistoryLimit": int64(9)}, api.PhaseCommitted
	if r.EarlierOnFailure != "" {
		with["onFailure"], ends = r.EarlierOnFailure, api.PhaseFailed
	}
	if err := r.commit(earlier, with, r.Earlier, ends); err != nil || len(r.Since) == 0 {
		return err
	}
	return r.commit(since, map[string]any{"revisionHistoryLimit": int64(9)}, r.Since, api.PhaseCommitted)
}

func (r *run) commit(name string, with map[string]any, changes []map[string]any, ends api.Phase) error {
	txn, err := r.transaction(r.at, name, with, changes)
	if err != nil {
		return err
	}
	made, err := r.Dynamic.Resource(api.Resource).Namespace(r.at.namespace).Create(r.ctx, txn, metav1.CreateOptions{FieldManager: harness.Manager})
	if err != nil {
		return fmt.Errorf("create the Transaction before: %w", err)
	}
	j, err := harness.Launch(r.janusd, r.at.namespace, zap.NewNop(), harness.WithSchemas(r.schemas))
	if err != nil {
		return err
	}
	defer j.Stop()
	ended, err := r.hub.ended(r.ctx, nameOf(made), made.GetUID(), r.generation, bound)
	if err != nil {
		return fmt.Errorf("the Transaction before: %w", err)
	}
	if ended == nil || ended.Status.Phase != ends || ended.Status.RevisionDigest == "" {
		return fmt.Errorf("the Transaction before is not remembered: %s", harness.Describe(ended))
	}
	// It has ended long ago: nobody who starts looks for what it may have left.
	j.Stop()
	_, err = r.Dynamic.Resource(api.Resource).Namespace(r.at.namespace).Patch(r.ctx, name, types.MergePatchType,
		[]byte(`{"status": {"completionTime": "2020-01-01T00:00:00Z"}}`), metav1.PatchOptions{FieldManager: harness.Manager}, "status")
	return err
}

// changed are the changes that a workload is about: an undo has those of the other.
func (w workload) changed() []map[string]any {
	if w.Undoes {
		return append(slices.Clone(w.Earlier), w.Since...)
	}
	return w.Changes
}

// derived gives an undo the changes that have followed from it, as its status says.
func (r *run) derived(out *result, t api.Transaction) api.Transaction {
	for _, v := range out.history {
		if t.Spec.UndoOf == nil || v.Object.GetUID() != t.UID {
			continue
		}
		if as, err := wiring.FromUnstructured(v.Object); err == nil && len(as.Spec.Changes) > 0 {
			return *as
		}
	}
	return t
}

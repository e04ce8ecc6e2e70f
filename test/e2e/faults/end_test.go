package faults

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
)

// submit creates the Transactions.
func (r *run) submit() error {
	for i, txn := range r.txns {
		made, err := r.Dynamic.Resource(api.Resource).Namespace(r.at.namespace).Create(r.ctx, txn, metav1.CreateOptions{FieldManager: harness.Manager})
		if err != nil {
			return err
		}
		r.txns[i] = made
		if r.since == 0 {
			if r.since, err = revision(made.GetResourceVersion()); err != nil {
				return err
			}
		}
	}
	return nil
}

// await waits for the end of every Transaction.
func (r *run) await() (ended []*api.Transaction, err error) {
	for _, txn := range r.txns {
		t, failed := r.hub.ended(r.ctx, nameOf(txn), txn.GetUID(), r.generation, bound)
		ended = append(ended, t)
		if failed != nil && err == nil {
			err = fmt.Errorf("%s: %w", txn.GetName(), failed)
		}
	}
	return ended, err
}

// missed lists where what was planned has not happened: its call was not made, or is one
// to which that fault cannot happen, such as a stale read of what has not changed.
func (r *run) missed() []faultinject.At {
	missed, calls := r.line.Missed(), r.line.Calls()
	for _, e := range r.plan.events {
		if !slices.Contains(missed, e.at) && !slices.ContainsFunc(calls, e.canHappen) {
			missed = append(missed, e.at)
		}
	}
	return missed
}

// finish waits for the end and holds what is there against what must be.
func (r *run) finish(out *result) {
	ended, err := r.await()
	r.line.Settle()
	if err == nil {
		err = r.restored()
	}
	if err == nil {
		// What faults and acts have held back may still have been to do.
		ended, err = r.await()
	}
	out.ended = ended
	if err == nil && (r.twofold() || r.plan.deletes()) {
		err = r.rest(out)
	}
	r.stop()
	out.calls, out.missed, out.log = r.line.Calls(), r.missed(), r.log.String()
	if err == nil {
		out.history, err = r.history()
	}
	if err != nil {
		out.failures = append(out.failures, err.Error())
		return
	}
	for _, t := range ended {
		end := "gone"
		if t != nil {
			end = string(t.Status.Phase)
		}
		out.ends = append(out.ends, end)
	}
	if out.final, err = r.finals(); err != nil {
		out.failures = append(out.failures, err.Error())
		return
	}
	out.failures = append(out.failures, r.judge(out)...)
}

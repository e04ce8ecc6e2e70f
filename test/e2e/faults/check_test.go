package faults

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/oracle"
)

// judge holds a run against the guarantees, and against the run without a fault.
func (r *run) judge(out *result) []string {
	r.mu.Lock()
	failures := slices.Clone(r.acted)
	r.mu.Unlock()
	failures = append(failures, r.left(out)...)
	failures = append(failures, r.breaches(out)...)
	if len(r.plan.events) == 0 {
		if want := r.wanted(); !slices.Equal(out.ends, want) {
			failures = append(failures, fmt.Sprintf("without a fault it ends %s, not %s", out.ends, want))
		}
		return failures
	}
	if r.plan.foreign() {
		return failures
	}
	learned := r.learned(r.workload)
	for i, end := range out.ends {
		if allowed := allowedEnds(r.plan, r.wanted()[i]); !slices.Contains(allowed, end) {
			return append(failures, fmt.Sprintf("%s ends %s, not %s", r.txns[i].GetName(), end, strings.Join(allowed, " or ")))
		}
	}
	if !slices.Equal(out.ends, learned.ends) || len(r.txns) > 1 {
		return failures // the guarantees say what must be there then
	}
	for name, want := range learned.final {
		have := out.final[name]
		if r.plan.has(string(faultinject.Stale)) {
			// Who reads an object as it was before the change finds nothing to hand over.
			want, _, _ = strings.Cut(want, ownersBegin)
			have, _, _ = strings.Cut(have, ownersBegin)
		}
		if have != want {
			failures = append(failures, fmt.Sprintf("%s ends otherwise than without a fault:\n   without: %s\n      with: %s", name, want, have))
		}
	}
	return failures
}

// wanted are the phases in which the Transactions end without a fault.
func (r *run) wanted() []string {
	if len(r.Contenders) == 0 {
		return []string{string(r.Ends)}
	}
	return contestOf(r.Name).wanted()
}

// twofold reports whether two processes of Janus run at the same time.
func (r *run) twofold() bool { return r.Processes > 1 || r.plan.has("second-janus") }

// rest waits until Janus has let go of what it took too late, or of what a Transaction
// left that vanished, and keeps what has happened.
func (r *run) rest(out *result) (err error) {
	for range 100 {
		if out.history, err = r.history(); err != nil || len(r.left(out)) == 0 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// left says what of the Transactions is left behind: a lock, a finalizer of Janus, or
// a before-image that is not kept on purpose.
func (r *run) left(out *result) (found []string) {
	for _, t := range out.ended {
		if t != nil && slices.Contains(t.Finalizers, api.Finalizer) {
			found = append(found, fmt.Sprintf("%s has finalizers: %v", t.Name, t.Finalizers))
		}
	}
	for _, v := range out.live() {
		if v.Object.GetLabels()["app.kubernetes.io/managed-by"] != "janus" {
			continue
		}
		switch v.Ref.Resource {
		case "leases.coordination.k8s.io":
			found = append(found, "a lock is left: "+v.Ref.String())
		case "configmaps", "secrets":
			before := len(r.Earlier) > 0 && strings.HasPrefix(v.Ref.Name, earlier)
			if len(v.Object.GetFinalizers()) > 0 || !before && !out.keeps(v.Ref.Name) {
				found = append(found, fmt.Sprintf("a before-image is left: %s with finalizers %v", v.Ref, v.Object.GetFinalizers()))
			}
		}
	}
	return found
}

// keeps reports whether an object holds before-images that are kept on purpose.
func (out *result) keeps(image string) bool {
	return slices.ContainsFunc(out.ended, func(t *api.Transaction) bool {
		return t != nil && t.Status.RollbackRef != nil && (t.Status.Phase != api.PhaseCommitted || t.Status.Revision > 0) && strings.HasPrefix(image, t.Name+"-rollback")
	})
}

// live are the objects that were there in the end.
func (out *result) live() map[oracle.Ref]oracle.Version {
	live := map[oracle.Ref]oracle.Version{}
	for _, v := range out.history {
		if v.Deleted {
			delete(live, v.Ref)
		} else {
			live[v.Ref] = v
		}
	}
	return live
}

// finals returns the targets as they are, without what differs from run to run.
func (r *run) finals() (map[string]string, error) {
	out := map[string]string{}
	for _, t := range r.targets {
		live, err := r.read(r.ctx, t)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", t.Ref, err)
		}
		out[r.at.names(t.String())] = r.canonical(live)
	}
	return out, nil
}

// ownersBegin is between the fields of an object and who owns them.
const ownersBegin = " owned by "

// canonical is an object as text, the same for every run in which it is the same.
func (r *run) canonical(live *unstructured.Unstructured) string {
	if live == nil {
		return "absent"
	}
	obj := harness.Settled(live)
	var entries []any
	for _, e := range live.GetManagedFields() {
		if e.Subresource == "" && e.Manager != "kube-controller-manager" && e.FieldsV1 != nil {
			entries = append(entries, []string{e.Manager, string(e.Operation), string(e.FieldsV1.GetRawBytes())})
		}
	}
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(obj.Object, "spec", field)
	}
	text, err := json.Marshal(obj.Object)
	if err != nil {
		return err.Error()
	}
	managers, err := json.Marshal(entries)
	if err != nil {
		return err.Error()
	}
	text = append(append(text, ownersBegin...), managers...)
	if len(text) > 10_000 {
		text = []byte(strings.ReplaceAll(string(text), filler, "FILLER"))
	}
	return r.at.names(string(text))
}

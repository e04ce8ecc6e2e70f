package faults

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/oracle"
)

// breaches hands the evidence of a run to the oracle.
func (r *run) breaches(out *result) []string {
	evidence := oracle.Evidence{
		History: out.history, Calls: out.calls, Texts: map[string]string{"log": out.log}, Canary: r.Canary, Home: harness.SystemNamespace,
		CallsSinceFault: callsSince(out), ClocksTurned: r.plan.has("clock-"), Kinds: r.kinds,
	}
	for _, txn := range r.txns {
		var t api.Transaction
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(txn.Object, &t); err != nil {
			return []string{fmt.Sprintf("read the Transaction: %v", err)}
		}
		t, err := r.withContents(r.derived(out, t))
		if err != nil {
			return []string{err.Error()}
		}
		of := oracle.Run{Namespace: t.Namespace, Name: t.Name, UID: t.UID, Spec: t.Spec}
		for _, change := range t.Spec.Changes {
			of.Items = append(of.Items, r.refOf(change.Target))
		}
		evidence.Runs = append(evidence.Runs, of)
	}
	if r.keep != nil {
		r.keep(r.plan, evidence)
	}
	var found []string
	all := oracle.Judge(evidence)
	if len(r.txns) > 1 {
		all = append(all, oracle.Serializable(evidence)...)
	}
	for _, b := range all {
		found = append(found, b.Guarantee+": "+b.Message)
	}
	return found
}

func (r *run) refOf(t api.Target) oracle.Ref {
	for _, known := range r.targets {
		if known.kind.Kind == t.Kind && known.Name == t.Name && (known.Namespace == t.Namespace || t.Namespace == "") {
			return known.Ref
		}
	}
	return oracle.Ref{Resource: t.Kind, Namespace: t.Namespace, Name: t.Name}
}

// history is what the watcher has seen of the run: of its namespaces since it began,
// and of the objects of the cluster those that have its name.
func (r *run) history() (oracle.History, error) {
	namespaces := []string{r.at.namespace}
	if r.Rights == "cluster" {
		namespaces = append(namespaces, r.at.other, r.at.run+"-made")
	}
	all, err := r.scribe.history(namespaces)
	if err != nil {
		return nil, err
	}
	var out oracle.History
	for _, v := range all {
		home := v.Ref.Namespace
		if v.Ref.Resource == "namespaces" {
			home = v.Ref.Name
		}
		if v.Revision >= r.since && slices.Contains(namespaces, home) {
			out = append(out, v)
		}
	}
	out = append(out, r.ownKinds()...)
	if r.Rights == "cluster" {
		if err := harness.Poll(r.ctx, r.seesTheCluster); err != nil {
			return nil, fmt.Errorf("wait until the watcher has seen the objects of the cluster: %w", err)
		}
		out = append(out, r.ofTheCluster()...)
		slices.SortStableFunc(out, func(a, b oracle.Version) int { return cmp.Compare(a.Revision, b.Revision) })
	}
	return out, nil
}

// ownKinds are the versions of objects of a kind that comes and goes with the run, which
// nobody can watch before it is there: as the API server has answered to writes. The
// answer to a deletion does not say when it was; it was after the write before it.
func (r *run) ownKinds() (out oracle.History) {
	last := r.since
	for _, call := range r.line.Calls() {
		if !call.Landed() {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(call.Answer); err != nil {
			continue
		}
		at, err := revision(obj.GetResourceVersion())
		if err == nil {
			last = max(last, at)
		}
		if !strings.Contains(call.Path, r.at.run+".example.com/") {
			continue
		}
		ref := oracle.Ref{Resource: call.Resource + "." + r.at.run + ".example.com", Namespace: call.Namespace, Name: call.Name}
		version := oracle.Version{Ref: ref, Revision: at, Object: obj, Deleted: call.Method == http.MethodDelete}
		if version.Deleted && len(out) > 0 {
			version.Object, version.Revision = out[len(out)-1].Object.DeepCopy(), last+1
		}
		out = append(out, version)
	}
	return out
}

// ofTheCluster is what was seen of the objects of the run that are in no namespace of
// its own: targets, and locks of Janus' namespace.
func (r *run) ofTheCluster() (out oracle.History) {
	for _, v := range r.watcher.Seen("", harness.SystemNamespace) {
		named := strings.Contains(v.Ref.Name, r.at.run) || strings.Contains(v.Ref.Name, r.at.namespace) || strings.Contains(v.Ref.Name, r.at.other)
		if named && v.Revision >= r.since && v.Ref.Resource != "namespaces" {
			out = append(out, v)
		}
	}
	return out
}

// seesTheCluster reports whether the watcher has seen the targets of the cluster as
// they are.
func (r *run) seesTheCluster(ctx context.Context) (bool, error) {
	seen := (&result{history: r.ofTheCluster()}).live()
	for _, t := range r.targets {
		if t.Namespace != "" || t.kind.Kind == "Namespace" {
			continue
		}
		live, err := r.read(ctx, t)
		if err != nil {
			return false, err
		}
		last, ok := seen[t.Ref]
		if ok != (live != nil) || ok && last.Object.GetResourceVersion() != live.GetResourceVersion() {
			return false, nil
		}
	}
	return true, nil
}

// callsSince counts what Janus has sent since the last fault.
func callsSince(out *result) int {
	last := -1
	for i, call := range out.calls {
		if slices.ContainsFunc(out.plan.events, func(e event) bool { return e.at == call.At }) {
			last = i
		}
	}
	return len(out.calls) - 1 - last
}

// revision is a resourceVersion as a number.
func revision(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

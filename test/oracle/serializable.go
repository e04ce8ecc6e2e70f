package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
)

// Isolation is the guarantee that Serializable judges.
const Isolation = "isolation"

// Serializable checks whether the committed Transactions of a run can be put into
// an order in which one after the other would have read and written the same. It
// draws an arrow from one to another that must come later, as it read or overwrote
// what the first wrote, or wrote what the first had read before; a circle is a
// breach. So is reading what a Transaction wrote that did not commit, which holds
// only where nobody takes its locks away.
func Serializable(e Evidence) []Breach {
	var all []footprint
	for _, run := range e.Runs {
		all = append(all, e.footprint(run))
	}
	arrows := map[string]map[string]string{}
	var breaches []Breach
	for _, a := range all {
		for _, b := range all {
			if a.name == b.name || !b.committed {
				continue
			}
			why, dirty := a.before(b)
			switch {
			case dirty && !a.committed:
				breaches = append(breaches, Breach{Isolation, fmt.Sprintf("%s has read what %s wrote and undid: %s", b.name, a.name, why)})
			case why != "" && a.committed:
				if arrows[a.name] == nil {
					arrows[a.name] = map[string]string{}
				}
				arrows[a.name][b.name] = why
			}
		}
	}
	if circle := circleIn(arrows); len(circle) > 0 {
		breaches = append(breaches, Breach{Isolation, "no order of these gives what they read and wrote: " + strings.Join(circle, "; ")})
	}
	return breaches
}

// footprint is what a Transaction has read and written, by object.
type footprint struct {
	name      string
	committed bool
	touched   map[Ref]touch
}

// touch has revisions: of the version that was read, 0 for none; and of the first and of
// the last write. With that, what has not committed was rolled back, if there were two.
type touch struct{ read, first, last int64 }

func (e Evidence) footprint(run Run) footprint {
	f := footprint{name: run.Namespace + "/" + run.Name, touched: map[Ref]touch{}}
	var status *unstructured.Unstructured
	for _, v := range e.History {
		if v.Ref.Resource == "transactions.backup.janus.io" && v.Ref.Namespace == run.Namespace && v.Ref.Name == run.Name && !v.Deleted {
			status = v.Object
			f.noteReads(run, status)
		}
	}
	if status != nil {
		phase, _, _ := unstructured.NestedString(status.Object, "status", "phase")
		f.committed = api.Phase(phase) == api.PhaseCommitted
	}
	family := "janus-" + string(run.UID)
	if len(run.UID) > 8 {
		family = "janus-" + string(run.UID[:8])
	}
	for _, c := range e.Calls {
		if !c.Landed() || !f.knows(run, c.Resource, c.Namespace, c.Name) {
			continue
		}
		ours := strings.HasPrefix(c.FieldManager, family+"-")
		if c.Method == "DELETE" {
			ours = strings.HasSuffix(c.User, ":"+run.Spec.ServiceAccountName)
		}
		if !ours {
			continue
		}
		f.noteWrite(run, c.Resource, c.Namespace, c.Name, revisionIn(c.Answer), e.deletion(c.Resource, c.Namespace, c.Name, c.Answer))
	}
	return f
}

// noteReads keeps the version of each target that its before-image is of.
func (f *footprint) noteReads(run Run, txn *unstructured.Unstructured) {
	items, _, _ := unstructured.NestedSlice(txn.Object, "status", "items")
	for i, it := range items {
		item, _ := it.(map[string]any)
		version, _, _ := unstructured.NestedString(item, "before", "resourceVersion")
		revision, err := strconv.ParseInt(version, 10, 64)
		if i >= len(run.Items) || err != nil {
			continue
		}
		t := f.touched[run.Items[i]]
		if t.read == 0 {
			t.read = revision
			f.touched[run.Items[i]] = t
		}
	}
}

func (f *footprint) knows(run Run, resource, namespace, name string) bool {
	return slices.ContainsFunc(run.Items, func(r Ref) bool { return isRef(r, resource, namespace, name) })
}

func isRef(r Ref, resource, namespace, name string) bool {
	plural, _, _ := strings.Cut(r.Resource, ".")
	return plural == resource && r.Namespace == namespace && r.Name == name
}

func (f *footprint) noteWrite(run Run, resource, namespace, name string, revision, deleted int64) {
	if revision == 0 {
		revision = deleted
	}
	for _, r := range run.Items {
		if !isRef(r, resource, namespace, name) || revision == 0 {
			continue
		}
		t := f.touched[r]
		if t.first == 0 {
			t.first = revision
		}
		t.last = max(t.last, revision)
		f.touched[r] = t
		return
	}
}

// revisionIn is the resourceVersion in an answer; 0 if there is none.
func revisionIn(answer []byte) int64 {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(answer); err != nil {
		return 0
	}
	revision, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// deletion is when the object of an answer to a DELETE went.
func (e Evidence) deletion(resource, namespace, name string, answer []byte) int64 {
	for _, v := range e.History {
		if v.Deleted && isRef(v.Ref, resource, namespace, name) && strings.Contains(string(answer), string(v.Object.GetUID())) {
			return v.Revision
		}
	}
	return 0
}

// before says why a must come before b, and whether it is because b has read what a
// wrote. It is empty if nothing demands it.
func (f footprint) before(b footprint) (why string, dirty bool) {
	for ref, mine := range f.touched {
		theirs, ok := b.touched[ref]
		if !ok {
			continue
		}
		undone := !f.committed && mine.last > mine.first
		switch {
		case mine.first > 0 && theirs.read >= mine.first && (!undone || theirs.read < mine.last):
			return fmt.Sprintf("%s wrote %s at %d, %s read it at %d", f.name, ref, mine.first, b.name, theirs.read), true
		case mine.first > 0 && theirs.last > mine.first:
			why = fmt.Sprintf("%s wrote %s at %d, %s at %d", f.name, ref, mine.first, b.name, theirs.last)
		case mine.read > 0 && theirs.last > mine.read:
			why = fmt.Sprintf("%s read %s at %d, %s wrote it at %d", f.name, ref, mine.read, b.name, theirs.last)
		}
	}
	return why, false
}

// circleIn returns the reasons along a circle of arrows; none if there is no circle.
func circleIn(arrows map[string]map[string]string) []string {
	const visiting, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(at string) []string
	visit = func(at string) []string {
		state[at] = visiting
		path = append(path, at)
		for _, next := range sortedKeys(arrows[at]) {
			switch state[next] {
			case visiting:
				return reasons(arrows, append(slices.Clone(path[slices.Index(path, next):]), next))
			case 0:
				if found := visit(next); found != nil {
					return found
				}
			}
		}
		state[at] = done
		path = path[:len(path)-1]
		return nil
	}
	for _, start := range sortedKeys(arrows) {
		if state[start] == 0 {
			if found := visit(start); found != nil {
				return found
			}
		}
	}
	return nil
}

func reasons(arrows map[string]map[string]string, path []string) []string {
	var out []string
	for i := range len(path) - 1 {
		out = append(out, arrows[path[i]][path[i+1]])
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

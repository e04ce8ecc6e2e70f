package processes

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/mutate"
)

func decode(obj map[string]any, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(obj, into)
}

// judgeTarget wants that a target went through its states as it should, and is now
// what it has to be, with the owners of its fields.
func (w *world) judgeTarget(s *saga, t *target, end api.TransactionStatus) {
	versions := w.history.targets[t.ref()]
	if t.initial != nil && len(versions) > 0 {
		// The first version is the one that the test made.
		if !assert.Equal(w.t, t.states[0], versions[0].state, "%s as it was made", t.ref()) {
			return
		}
		versions = versions[1:]
	}
	steps, err := walk(t.states, versions, end.Phase)
	if err != nil {
		w.t.Errorf("%s of %s: %v", t.ref(), w.describe(s), err)
		return
	}
	w.counts.add("changes in effect, and rolled back", steps)
	now := w.final(t.kind, t.name)
	assert.Empty(w.t, itemManagers(now), "managers of items that stay on %s of %s", t.ref(), w.describe(s))
	if now == nil {
		return
	}
	if t.before == nil {
		return
	}
	assert.NotContains(w.t, now.GetAnnotations(), mutate.MarkerAnnotation, "%s of %s", t.ref(), s.name)
	gone := slices.ContainsFunc(versions, func(v seen) bool { return v.state == "" })
	if !gone {
		assert.Equal(w.t, t.before.GetUID(), now.GetUID(), "uid of %s of %s", t.ref(), s.name)
	}
	gap := slices.ContainsFunc(versions, func(v seen) bool { return v.gap })
	if t.kind == deployment && !gap && !s.noisy { // a new annotation counts as one too
		assert.Equal(w.t, t.before.GetGeneration()+int64(steps), now.GetGeneration(), "generation of %s of %s", t.ref(), s.name)
	}
	if end.Phase != api.PhaseCommitted {
		assert.Equal(w.t, owners(t.before), owners(now), "owners of %s of %s", t.ref(), w.describe(s))
	}
}

// walk follows the versions of an object along its states. It goes forward first and
// then, unless the Transaction commits, back to where it was; each state is one step
// from the one before. It gives the number of steps.
func walk(states []string, versions []seen, phase api.Phase) (int, error) {
	position, back, steps := 0, false, 0
	var wrong []error
	path := "0"
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	for _, v := range versions {
		next := slices.Index(states, v.state)
		far := next - position
		path += fmt.Sprintf(" →%d at %d", next, v.revision)
		switch {
		case next < 0:
			fail("at %d it is neither as before nor as a change makes it:\n%s\nis none of\n%s", v.revision, v.state, strings.Join(states, "\n"))
			return steps, errors.Join(wrong...)
		case far > 0 && back:
			fail("at %d a change is made that had been rolled back", v.revision)
		case (far > 1 || far < -1) && !v.gap:
			fail("at %d it goes from state %d to state %d at once", v.revision, position, next)
		}
		back = back || far < 0
		position, steps = next, steps+max(far, -far)
	}
	switch {
	case phase == api.PhaseCommitted && (position != len(states)-1 || back):
		fail("it is Committed with the target in state %d of %d", position, len(states)-1)
	case phase != api.PhaseCommitted && position != 0:
		fail("it is %s with the target in state %d", phase, position)
	case phase == api.PhaseFailed && steps > 0:
		fail("it is Failed after changes were made")
	}
	if len(wrong) > 0 {
		fail("its states were %s", path)
	}
	return steps, errors.Join(wrong...)
}

// judgeHot wants each Transaction's key in a hot ConfigMap to come once, and to go
// unless the Transaction commits, and the keys of all others to stay meanwhile.
func (w *world) judgeHot(name string) {
	versions := w.history.hots["ConfigMap/"+name]
	keys := map[string][]seen{}
	for _, v := range versions {
		var state struct{ Data map[string]string }
		require.NoError(w.t, json.Unmarshal([]byte(v.state), &state))
		assert.Equal(w.t, "kept", state.Data["kept"], "%s at %d", name, v.revision)
		for key := range state.Data {
			if _, ok := keys[key]; !ok && key != "kept" {
				keys[key] = nil
			}
		}
		for key := range keys {
			one := v
			one.state = state.Data[key]
			if before := keys[key]; len(before) == 0 || before[len(before)-1].state != one.state {
				keys[key] = append(before, one)
			}
		}
	}
	wanted := map[string]bool{}
	for _, s := range w.load.all() {
		if !slices.Contains(s.hots, name) {
			continue
		}
		wanted[s.key()] = true
		steps, err := walk([]string{"", "yes"}, keys[s.key()], w.end(s).Phase)
		if err != nil {
			w.t.Errorf("key %s of %s, %s: %v", s.key(), name, w.describe(s), err)
		}
		w.counts.add("changes in effect, and rolled back", steps)
	}
	for key := range keys {
		assert.True(w.t, wanted[key], "nobody wanted key %s of %s", key, name)
	}
	assert.Empty(w.t, itemManagers(w.final(configMap, name)), "managers of items that stay on %s", name)
}

// judgeForeign wants every acknowledged write of the foreign writer to be there,
// unless a change that removed it was made of an object that had it.
func (w *world) judgeForeign() {
	removers := map[string]*saga{}
	targets := map[string]*target{}
	for _, s := range w.load.all() {
		for _, t := range s.targets {
			kind := t.changes[0]["type"]
			if w.end(s).Phase == api.PhaseCommitted && (kind == string(api.Update) || kind == string(api.Delete)) {
				removers[t.ref()], targets[t.ref()] = s, t
			}
		}
	}
	for _, write := range w.foreign.writes {
		if s := removers[write.ref]; s != nil {
			versions := w.history.targets[write.ref]
			if made := versions[len(versions)-1].revision; write.revision < made {
				assert.LessOrEqual(w.t, write.revision, w.prepared(s, targets[write.ref]),
					"%v was written after %s was prepared, and is lost", write, s.name)
				continue
			}
		}
		kindName, name, _ := strings.Cut(write.ref, "/")
		now := w.final(map[string]kind{"ConfigMap": configMap, "Secret": secret, "Deployment": deployment}[kindName], name)
		if !assert.NotNil(w.t, now, "%s is gone, with what was written", write.ref) {
			continue
		}
		value, _, _ := unstructured.NestedString(now.Object, write.path...)
		assert.Equal(w.t, write.value, value, "%v is lost", write)
	}
}

// prepared returns the revision that a target had when it was prepared.
func (w *world) prepared(s *saga, t *target) uint64 {
	for _, item := range w.end(s).Items {
		if item.Target.Kind == t.Kind && item.Target.Name == t.name && item.Before != nil {
			return number(item.Before.ResourceVersion)
		}
	}
	return 0
}

// final is an object as it is in the end.
func (w *world) final(k kind, name string) *unstructured.Unstructured {
	return w.history.known[k.plural+"/"+w.namespace+"/"+name]
}

// itemManagers lists the managers of items that own something.
func itemManagers(obj *unstructured.Unstructured) []string {
	var out []string
	if obj != nil {
		for _, entry := range obj.GetManagedFields() {
			if strings.HasPrefix(entry.Manager, mutate.DefaultManager+"-") {
				out = append(out, entry.Manager)
			}
		}
	}
	return out
}

// owners returns the entries of managedFields, times included, but those of the status
// and of the foreign writer.
func owners(obj *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource != "" || entry.Manager == foreignManager
	})
}

package sweep

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
	"janus.io/janus/test/harness"
)

const exact = "exact"

// TestEveryKindIsRolledBackAsDocumented makes the changes of every sample, has each rolled back,
// makes it again, and undoes it. The table of docs/reference/kinds.md is what comes out.
func TestEveryKindIsRolledBackAsDocumented(t *testing.T) {
	all := samples(t, strings.NewReplacer())
	rows := make([]row, len(all))
	converter := newConverter(t)
	t.Run("kinds", func(t *testing.T) {
		for i, s := range all {
			rows[i] = row{title: s.title(), without: s.Without}
			if s.Without != "" {
				continue
			}
			t.Run(s.title(), func(t *testing.T) {
				t.Parallel()
				r := newRun(t, i, converter)
				rows[i].made, rows[i].steps = r.all()
			})
		}
	})
	whole := !slices.ContainsFunc(rows, func(r row) bool { return r.without == "" && len(r.steps) == 0 })
	if whole && !t.Failed() {
		documented(t, rows)
	}
}

// run is what is done with one sample.
type run struct {
	*harness.Env
	t *testing.T
	sample
	client dynamic.ResourceInterface
	count  int
}

func newRun(t *testing.T, index int, c *converter) *run {
	t.Helper()
	e := harness.New(t)
	r := &run{Env: e, t: t, sample: samples(t, namesFor(t, e.Namespace, c))[index]}
	r.ClusterWide()
	for _, need := range r.Needs {
		r.apply(need)
	}
	require.Eventually(t, func() bool {
		var err error
		r.client, err = e.For(r.obj().GroupVersionKind(), e.Namespace)
		if err == nil {
			_, err = r.client.List(t.Context(), metav1.ListOptions{Limit: 1})
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond, "the kind is not served")
	e.Start()
	return r
}

// apply applies an object as a person would, and deletes it after the test.
func (r *run) apply(object content) {
	r.t.Helper()
	obj := &unstructured.Unstructured{Object: object}
	client, err := r.For(obj.GroupVersionKind(), r.Namespace)
	require.NoError(r.t, err)
	text, err := json.Marshal(object)
	require.NoError(r.t, err)
	require.Eventually(r.t, func() bool {
		err = r.ApplyYAML(r.t.Context(), r.Namespace, string(text))
		return err == nil
	}, 20*time.Second, 100*time.Millisecond, "apply %s: %v", obj.GetName(), err)
	r.t.Cleanup(func() { _ = client.Delete(background, obj.GetName(), metav1.DeleteOptions{}) })
}

// all returns what has come of the creation, and of each step.
func (r *run) all() (made outcome, steps []outcome) {
	create := step{name: "Create", change: "Create", version: r.obj().GetAPIVersion(), content: unset(r.Body, "apiVersion", "kind")}
	made = r.try(create)
	for _, s := range r.steps() {
		r.present()
		steps = append(steps, r.try(s))
	}
	return made, steps
}

// present makes the object as it is before a change, unless it is there; another client
// owns one field of it by an update.
func (r *run) present() {
	r.t.Helper()
	r.apply(r.Body)
	_, err := r.client.Patch(r.t.Context(), r.obj().GetName(), types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/by":"person"}}}`), metav1.PatchOptions{FieldManager: "person"})
	require.NoError(r.t, err)
	if r.Status != nil {
		status, err := json.Marshal(content{"status": r.Status})
		require.NoError(r.t, err)
		_, err = r.client.Patch(r.t.Context(), r.obj().GetName(), types.MergePatchType, status, metav1.PatchOptions{FieldManager: "controller"}, "status")
		require.NoError(r.t, err)
	}
	r.settled()
}

// absent removes the object, whatever has become of it.
func (r *run) absent() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		err := r.client.Delete(r.t.Context(), r.obj().GetName(), metav1.DeleteOptions{})
		return apierrors.IsNotFound(err)
	}, time.Minute, 100*time.Millisecond, "it does not go away")
}

// settled waits until the controllers leave the object alone, which some never do, and
// returns it.
func (r *run) settled() *unstructured.Unstructured {
	r.t.Helper()
	last, still := "", 0
	var obj *unstructured.Unstructured
	for range 40 {
		var err error
		obj, err = r.client.Get(r.t.Context(), r.obj().GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			obj = nil
		} else {
			require.NoError(r.t, err)
		}
		version := ""
		if obj != nil {
			version = obj.GetResourceVersion()
		}
		if still++; version != last {
			last, still = version, 0
		}
		if still == 3 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return obj
}

// try makes a change that is rolled back, and one that is undone.
func (r *run) try(s step) outcome {
	r.t.Helper()
	out := outcome{step: s}
	r.count++
	name := fmt.Sprintf("t%02d", r.count)
	before, beside := r.settled(), r.beside()
	txn := r.Run(name+"-back", s.spec(r.t, r.obj(), before, true))
	out.rollback = r.judge(s, "rollback", before, txn, txn.Status.Phase == api.PhaseRolledBack)
	if txn.Status.Phase == api.PhaseRolledBack {
		r.noneStrayed(s, "rollback", beside, txn)
	}
	if before = r.settled(); s.change != "Create" && out.rollback != exact && !strings.HasPrefix(out.rollback, refused) {
		r.absent()
		r.present()
		before = r.settled()
	}
	beside = r.beside()
	txn = r.Run(name, s.spec(r.t, r.obj(), before, false))
	if txn.Status.Phase != api.PhaseCommitted {
		out.undo = r.judge(s, "change", before, txn, false)
		assert.Equal(r.t, refused+errclass.Irreversible, out.undo, "%s %s: %s", r.title(), s.name, harness.Describe(txn))
		return out
	}
	txn = r.Run(name+"-undo", "{undoOf: {name: "+name+"}}")
	out.undo = r.judge(s, "undo", before, txn, txn.Status.Phase == api.PhaseCommitted)
	if txn.Status.Phase == api.PhaseCommitted {
		r.noneStrayed(s, "undo", beside, txn)
	}
	if out.undo != exact {
		r.absent()
	}
	return out
}

const refused = "refused: "

// judge says how exactly a Transaction has led back to what was before.
func (r *run) judge(s step, what string, before *unstructured.Unstructured, txn *api.Transaction, well bool) string {
	r.t.Helper()
	after := r.settled()
	if what == "undo" && s.change == "Delete" {
		after = unmarked(after)
	}
	differences := harness.Differences(before, after, r.Status != nil, what == "rollback")
	if well && len(differences) == 0 {
		return exact
	}
	r.t.Logf("%s, %s of %s: %v\n%s", r.title(), what, s.name, differences, harness.Describe(txn))
	reason := "Failed"
	if len(txn.Status.Items) > 0 {
		reason = txn.Status.Items[0].Reason
	}
	if !well {
		if len(differences) == 0 || what == "undo" {
			return refused + reason
		}
		return "kept: " + reason
	}
	for _, d := range differences {
		assert.True(r.t, named(txn, d), "%s, %s of %s: %s differs, and nothing says so:\nwas %v\nis %v\n%s", r.title(), what, s.name, d, before, after, harness.Describe(txn))
	}
	return "but " + strings.Join(differences, ", ")
}

// named reports whether the status of a Transaction tells of a difference.
func named(txn *api.Transaction, difference string) bool {
	item := txn.Status.Items[0]
	text := item.Message + " " + strings.Join(item.Warnings, " ") + fmt.Sprint(item.Conflicts, item.Reclaimed)
	return strings.Contains(text, strings.TrimPrefix(difference, "owner "))
}

// unmarked is an object without what tells which Transaction has made it: what an undo makes
// again is an object that a Transaction has made.
func unmarked(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	out := obj.DeepCopy()
	ours := func(name, _ string) bool {
		return strings.HasPrefix(name, api.TransactionKey) || name == mutate.MarkerAnnotation
	}
	labels, annotations := out.GetLabels(), out.GetAnnotations()
	maps.DeleteFunc(labels, ours)
	maps.DeleteFunc(annotations, ours)
	for name, left := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		unstructured.RemoveNestedField(out.Object, "metadata", name)
		if len(left) > 0 {
			_ = unstructured.SetNestedStringMap(out.Object, left, "metadata", name)
		}
	}
	out.SetManagedFields(slices.DeleteFunc(out.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == mutate.DefaultManager }))
	return out
}

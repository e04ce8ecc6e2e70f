package input

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// badInput is a Transaction that must not commit, and what its user is told.
type badInput struct {
	name string
	// setup is applied first. In it and in spec, $NS is the namespace of the row.
	setup string
	spec  string
	// arrange does what setup cannot, before Janus is started.
	arrange func(*testing.T, *harness.Env)
	// options are for Janus.
	options func(*harness.Env) []harness.Option
	// same are the targets. They must be as before in the end.
	same []string
	// gone are objects that must not exist in the end.
	gone []string
	ends harness.Ending
}

func (b badInput) run(t *testing.T) {
	t.Helper()
	e := harness.New(t)
	fill := func(s string) string { return strings.ReplaceAll(s, "$NS", e.Namespace) }
	e.Apply(fill(b.setup))
	if b.arrange != nil {
		b.arrange(t, e)
	}
	var before []*unstructured.Unstructured
	for _, ref := range b.same {
		before = append(before, e.Object(fill(ref)))
	}
	var options []harness.Option
	if b.options != nil {
		options = b.options(e)
	}
	e.Start(options...)

	txn := e.Run("bad", fill(b.spec))

	b.ends.In(e).Check(t, e, txn)
	for i, ref := range b.same {
		e.Same(before[i], fill(ref))
	}
	for _, ref := range b.gone {
		e.Same(nil, fill(ref))
	}
	e.NothingLeft("bad")
}

// failingAt makes the change with the given index fail when it is made: it must be
// the Create of ConfigMap late, which another client then creates first.
func failingAt(item int) func(*harness.Env) []harness.Option {
	return func(e *harness.Env) []harness.Option {
		return []harness.Option{harness.Acting(harness.Around{Do: func(_ string, i int) {
			if i == item {
				e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: late}, data: {of: somebody else}}`)
			}
		}})}
	}
}

// lateExists is how a Transaction ends whose fixture.CreateLate failed.
var lateExists = harness.Ending{
	Phase: api.PhaseRolledBack, Reason: "AlreadyExists", Validated: metav1.ConditionTrue,
	Says: []string{"ConfigMap $NS/late", "use Patch or Update"},
}

// patchThenLate is a spec of a list of changes on one line with fixture.CreateLate as
// its last.
func patchThenLate(spec string) string {
	return strings.TrimSuffix(spec, "]") + ", {target: {apiVersion: v1, kind: ConfigMap, name: late}, type: Create, content: {data: {of: janus}}}]"
}

// runAll runs the rows side by side: they wait more than they work.
func runAll(t *testing.T, groups ...[]badInput) {
	t.Helper()
	rows := slices.Concat(groups...)
	var names []string
	for _, row := range rows {
		names = append(names, row.name)
	}
	harness.Together(t, harness.SideBySide, names, func(t *testing.T, i int) { rows[i].run(t) })
}

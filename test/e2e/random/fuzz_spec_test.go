package random

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// fuzzWorld is a namespace in which random input meets Janus, with objects that
// nobody names.
type fuzzWorld struct {
	*harness.Env
	t      *current
	other  *harness.Env
	cases  int
	ends   map[string]int
	tamper *tampering // of the case at hand; nil for none
}

func newFuzzWorld(t *testing.T) *fuzzWorld {
	t.Helper()
	crd, err := os.ReadFile(filepath.Join(harness.Root(), "testdata", "crds", "widgets.yaml"))
	require.NoError(t, err)
	w := &fuzzWorld{t: &current{TB: t}, ends: map[string]int{}}
	w.Env = harness.New(w.t)
	w.Apply(string(crd))
	w.Served("example.com/v1 Widget")
	w.Refuse()
	w.ClusterWide()
	w.other = w.In(testcluster.Namespace(t))
	bystander := fuzzedSpec{}
	w.Apply(bystander.existing())
	w.other.Apply(bystander.existing())
	w.Start(w.watching()...)
	t.Cleanup(func() { t.Logf("%d cases: %v", w.cases, w.ends) })
	return w
}

// A spec is what users write: all of it that can be wrong is wrong at some time. And
// anyone who may write ConfigMaps, Secrets, Leases or the targets may tamper with what
// Janus keeps and goes by. Either is tried in half of the cases.
func TestWhateverTheInputTheTransactionEndsClearly(t *testing.T) {
	t.Parallel()
	w := newFuzzWorld(t)
	rapid.Check(t, func(r *rapid.T) {
		w.t.now = r
		w.cases++
		w.tamper = nil
		var s *fuzzedSpec
		if rapid.Bool().Draw(r, "tampered") {
			s = drawPlain(r, w.cases, w.Namespace, w.other.Namespace)
			w.tamper = w.drawTampering(r, len(s.spec["changes"].([]any)))
			r.Logf("%s before %s (%d)", w.tamper.what, w.tamper.moment, w.tamper.pick)
		} else {
			s = drawSpec(r, w.cases, w.Namespace, w.other.Namespace)
		}
		r.Logf("case %d: %s", w.cases, cut(encoded(s.spec)))
		w.meet(r, s)
	})
}

func cut(text string) string {
	if len(text) > 6000 {
		return text[:6000] + "…"
	}
	return text
}

// meet lets Janus meet a spec, and looks at what is there afterwards.
func (w *fuzzWorld) meet(r *rapid.T, s *fuzzedSpec) {
	name := s.transaction()
	w.Apply(s.existing())
	defer w.clear(s)
	before := w.inventory()
	began := time.Now()
	if err := w.TrySubmit(name, encoded(s.spec)); err != nil {
		r.Logf("refused: %s", cut(err.Error()))
		w.ends["refused by the API server"]++
		return
	}
	txn := w.ended(name)
	r.Logf("%s: %s", time.Since(began), cut(harness.Describe(txn)))
	if txn == nil {
		w.ends["gone"]++
		return
	}
	w.ends[string(txn.Status.Phase)+" "+w.tamper.String()]++
	checkClear(r, s, txn)
	w.checkLeft(r, txn)
	after := w.inventory()
	w.checkBystanders(r, s, before, after)
	if w.tamper == nil {
		w.NothingLeft(name)
	} else {
		w.tamper.check(r, w, txn)
	}
	checkAllOrNothing(r, s, txn, before, after)
}

// ended waits until a Transaction has ended, or is gone.
func (w *fuzzWorld) ended(name string) *api.Transaction {
	w.t.Helper()
	var last *api.Transaction
	w.Until(fmt.Sprintf("Transaction %s has ended", name), func() bool {
		last = w.Transaction(name)
		return last == nil || last.Status.Phase.Terminal()
	})
	return last
}

package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// planned tells of a Transaction that was tried, and is said to have been meant so.
func planned(dryRun bool) *world {
	s := tell(nil)
	s.spec.DryRun = dryRun
	s.store(txn, tree{"kind": "Transaction", "metadata": tree{"name": txn.Name, "namespace": ns, "uid": txnUID, "generation": int64(1)}})
	s.evidence.Runs = []Run{{Namespace: ns, Name: txn.Name, UID: txnUID, Spec: s.spec, Items: targets}}
	s.request(faultinject.Call{Method: "PATCH", User: account, FieldManager: manager(0), DryRun: true}, mapA, nil, nil)
	s.checkpoint(func(status tree) {
		var items []any
		for range targets {
			items = append(items, tree{})
		}
		status["items"], status["phase"], status["completionTime"] = items, "Planned", "2026-01-01T00:00:10Z"
		for i := range targets {
			move(status, i, api.ItemPending)
		}
	})
	return s.world
}

func TestAPlanIsNoBreach(t *testing.T) {
	assert.Empty(t, lines(planned(true).breaches()))
}

func TestAHandOverIsNotOfAPlanThatSkipsTheObject(t *testing.T) {
	ref := txn
	ref.Name = "plan"
	w := commit(hooks{"handover": func(w *world) {
		w.store(ref, tree{
			"kind": "Transaction", "metadata": tree{"name": ref.Name, "namespace": ns, "uid": "plan-uid", "generation": int64(1)},
			"status": tree{"phase": "Planned", "version": int64(1), "completionTime": "2026-01-01T00:00:10Z", "items": []any{tree{"state": "Skipped"}}},
		})
	}})
	skips := spec()
	skips.DryRun, skips.Changes = true, skips.Changes[:1]
	w.evidence.Runs = append([]Run{{Namespace: ns, Name: ref.Name, UID: "plan-uid", Spec: skips, Items: targets[:1]}}, w.evidence.Runs...)
	assert.Empty(t, lines(w.breaches()))
}

func TestBrokenDryRunsAreFound(t *testing.T) {
	expect(t, planned(false).breaches(), Atomicity, "is Planned (@105), and was to be carried out")

	carriedOut := commit(nil)
	carriedOut.evidence.Runs[0].Spec.DryRun = true
	found := carriedOut.breaches()
	for guarantee, message := range map[string]string{
		Atomicity:     "is to be tried only, and PATCH configmaps/a#0 landed on shop/configmaps/a",
		NothingLeft:   "is to be tried only, and has the finalizer " + api.Finalizer,
		LockExclusion: "is to be tried only, and holds ",
	} {
		expect(t, found, guarantee, message)
	}
	unheld := commit(hooks{"images": func(w *world) {
		w.send("PATCH", txn, faultinject.Call{}, "", func(o tree) { o["metadata"].(tree)["finalizers"] = nil })
	}})
	unheld.evidence.Runs[0].Spec.DryRun = true
	expect(t, unheld.breaches(), NothingLeft, "is to be tried only, and has before-images")
}

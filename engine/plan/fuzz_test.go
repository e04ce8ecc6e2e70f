package plan

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

// FuzzStored: whatever is stored of a Transaction, also by hand, the next step is
// about an item that is there and whose change is known, and what is said of it can
// be written.
func FuzzStored(f *testing.F) {
	add := func(status string) {
		f.Add([]byte(status), 2, int64(1), false, -1)
		f.Add([]byte(status), 1, int64(2), true, 0)
	}
	f.Add([]byte(`{"phase":"Committing","observedGeneration":1,"items":[{"state":"Committed"},{"state":"Committing"}]}`), 1, int64(1), false, -1)
	f.Add([]byte(`{"phase":"Preparing","observedGeneration":1}`), 2, int64(1), false, -1)
	add(`{}`)
	add(`{"phase":"Nonsense","items":null}`)
	for _, phase := range []api.Phase{api.PhasePending, api.PhasePreparing, api.PhasePrepared, api.PhaseCommitting, api.PhaseRollingBack, api.PhaseFailed, api.PhaseCommitted, api.PhasePlanned} {
		for _, state := range []api.ItemState{"", api.ItemPending, api.ItemPrepared, api.ItemCommitting, api.ItemCommitted, api.ItemRollingBack, api.ItemUnresolved, "Nonsense"} {
			add(`{"phase":"` + string(phase) + `","observedGeneration":1,"startTime":"2030-01-02T03:04:05Z","items":[{"name":"a","state":"Committed"},{"name":"b","state":"` + string(state) + `"}]}`)
		}
		add(`{"phase":"` + string(phase) + `","observedGeneration":1,"items":[{"name":"a","state":"Unresolved","reason":"Blocked","blockedBy":"b","dependsOn":["b","x"]},{"name":"b","state":"RollingBack","setAside":true,"setAsideFor":["a"],"dependsOn":["a","b"]}]}`)
		add(`{"phase":"` + string(phase) + `","items":[{},{},{},{}],"conditions":[{"type":"Succeeded","status":"Unknown"},{"type":"Succeeded"},{}],"recoveries":-1,"rollbackRef":{}}`)
		add(`{"phase":"` + string(phase) + `","completionTime":"0001-01-01T00:00:00Z","startTime":"9999-12-31T23:59:59Z","recoveries":2147483647}`)
	}
	f.Fuzz(func(t *testing.T, data []byte, changes int, generation int64, deleted bool, first int) {
		txn := fixture.Transaction([]string{"a", "b", "c"}[:min(max(changes, 1), 3)]...)
		if json.Unmarshal(data, &txn.Status) != nil {
			return
		}
		for i := range txn.Status.Conditions { // The API server stores none without.
			txn.Status.Conditions[i].Reason += "Reason"
			txn.Status.Conditions[i].Message += "message"
		}
		txn.Generation, txn.Finalizers = generation, []string{api.Finalizer}
		if deleted {
			txn.DeletionTimestamp = &metav1.Time{Time: fixture.Start}
		}
		if first < -1 || first >= len(txn.Status.Items) {
			first = -1
		}
		for _, now := range []time.Time{fixture.Start, fixture.Start.Add(1000 * time.Hour)} {
			for _, flight := range []InFlight{fresh(first), {Known: Known{first: Over}}, {Known: someOver(first), Due: true}} {
				checkDecided(t, txn, Decide(txn, flight, now, limits))
			}
		}
		Summarize(txn, fixture.Start)
		Preparable(txn)
		WaitingFor(txn)
		Lighten(&txn.Status)
		if _, err := json.Marshal(txn); err != nil {
			t.Fatal(err)
		}
	})
}

func checkDecided(t *testing.T, txn *api.Transaction, a Action) {
	t.Helper()
	items := len(txn.Status.Items)
	switch a.Verb {
	case Capture, Open, Do, Observe:
		if a.Item < 0 || a.Item >= items || items != len(txn.Spec.Changes) {
			t.Fatalf("%s %d of %d items and %d changes", a.Verb, a.Item, items, len(txn.Spec.Changes))
		}
		if a.Verb == Open && len(ScheduleOf(txn).Window(txn, 1)) == 0 {
			t.Fatalf("%s %d opens nothing of %+v", a.Verb, a.Item, txn.Status.Items)
		}
	case ObserveUndo, OpenUndo, Undo, SkipUndo:
		if a.Item < 0 || a.Item >= items {
			t.Fatalf("%s %d of %d items", a.Verb, a.Item, items)
		}
	case LeaveUndo:
		stored := txn.DeepCopy()
		held := HeldOf(stored, stored.Status.Items, func(int) bool { return false })
		if err := held.Leave(stored.Status.Items, a.Items); err != nil || len(a.Items) == 0 {
			t.Fatalf("%s %v of %d items: %v", a.Verb, a.Items, items, err)
		}
	case Prepare, Begin:
		if items != len(txn.Spec.Changes) {
			t.Fatalf("%s %d items of %d changes", a.Verb, items, len(txn.Spec.Changes))
		}
	case Fail, StartRollback:
		if a.Cause.Reason == "" || a.Cause.Message == "" {
			t.Fatalf("%s for %+v", a.Verb, a.Cause)
		}
	}
}

// someOver has item 2 and another over, and the other two of the first three unsent.
func someOver(another int) Known {
	known := Known{0: Unsent, 1: Unsent, 2: Over}
	known[another] = Over
	return known
}

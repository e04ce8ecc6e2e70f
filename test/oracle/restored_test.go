package oracle

import (
	"testing"

	api "janus.io/janus/api/v1alpha1"
)

// gatedBack tells of a rollback in which the compensation of item 2 is waited for.
func gatedBack(when api.ReadyWhen, more hooks) *world {
	all := hooks{"lock": func(w *world) {
		w.evidence.Runs[0].Spec.Changes[2].Rollback = &api.ChangeRollback{ReadyWhen: when}
	}}
	for step, act := range more {
		all[step] = act
	}
	return rollBack(all)
}

// restored writes that item 2 is restored, and waited for.
func restored(w *world) {
	w.checkpoint(func(s tree) {
		item := s["items"].([]any)[2].(tree)
		item["committed"], item["rolledBack"] = false, true
		item["rollbackWait"] = tree{"startTime": "2026-01-01T00:00:00Z"}
	})
}

// isReady writes that item 2 has been found ready.
func isReady(w *world) {
	w.checkpoint(func(s tree) {
		move(s, 2, api.ItemRolledBack)
		item := s["items"].([]any)[2].(tree)
		item["results"] = []any{tree{"condition": "rollback.readyWhen", "holds": true}}
		wait := item["rollbackWait"].(tree)
		wait["holdStartTime"], wait["readyTime"] = "2026-01-01T00:00:01Z", "2026-01-01T00:00:03Z"
	})
}

func TestCompensationsThatAreNotWaitedForAreFound(t *testing.T) {
	waited := func(w *world) {
		restored(w)
		isReady(w)
	}
	holds := api.ReadyWhen{Expression: "object.spec.replicas == 1"}
	minute := api.Duration("1m")
	for _, c := range []wrong{
		{"no wait", Order, "item 2 (Update shop/deployments.apps/web): it is rolled back (@", gatedBack(holds, nil)},
		{"never ready", Order, "and object.spec.replicas == 7 was at no time true", gatedBack(api.ReadyWhen{Expression: "object.spec.replicas == 7"}, hooks{"-undone2": waited})},
		{"not for long enough", Order, "it has to hold for 1m0s", gatedBack(api.ReadyWhen{Expression: holds.Expression, HoldFor: &minute}, hooks{"-undone2": waited})},
		{"the next one too early", Order, "while item 2, which is rolled back before it, was not ready", gatedBack(holds, hooks{"-undone2": restored, "undone1": isReady})},
		{"the next one before it is on record that it is restored", Order, "while item 2, which is rolled back before it, was not ready", gatedBack(holds, hooks{"-undone2": nothing, "undone1": waited})},
		{"ready, and no condition on record", Phases, "rests on rollback.readyWhen being true, and says of it false (recorded: false)", gatedBack(holds, hooks{"-undone2": waited, "open1": func(w *world) {
			w.checkpoint(func(s tree) { delete(s["items"].([]any)[2].(tree), "results") })
		}})},
		{"restored, and said to be in effect", Phases, "with prepared=true committed=true rolledBack=false", gatedBack(holds, hooks{"-undone2": func(w *world) {
			restored(w)
			w.checkpoint(func(s tree) { move(s, 2, api.ItemRollingBack) })
			isReady(w)
		}})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
	if found := gatedBack(holds, hooks{"-undone2": waited}).breaches(); len(found) > 0 {
		t.Errorf("one that is waited for is no breach:\n%s", lines(found))
	}
}

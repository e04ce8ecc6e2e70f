package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// yellow is what another client makes of the field that the Patch sets.
func yellow(w *world) {
	w.foreign(mapA, "somebody", func(o tree) { o["data"].(tree)["color"] = "yellow" })
}

func failedEnd(w *world) {
	w.checkpoint(func(s tree) { s["phase"], s["completionTime"] = "Failed", "2026-01-01T00:00:10Z" })
}

// The rollback of another Transaction puts back what this one has made of a field, which
// is this one's again.
func TestWhatAnotherRollbackPutsBackIsWhoseItWas(t *testing.T) {
	const uid = "bbbbcccc-0000-0000-0000-000000000000"
	other := faultinject.Call{User: account, FieldManager: "janus-bbbbcccc-0"}
	between := func(back string) *world {
		w := rollBack(hooks{"open0": func(w *world) {
			w.send("PATCH", mapA, other, "ConfigMap", func(o tree) { o["data"].(tree)["color"] = "yellow" })
			w.send("PATCH", mapA, other, "", func(o tree) { o["data"].(tree)["color"] = back })
		}})
		only := spec()
		only.Changes = only.Changes[:1]
		w.evidence.Runs = append(w.evidence.Runs, Run{Namespace: ns, Name: "other", UID: uid, Spec: only, Items: targets[:1]})
		return w
	}
	about := func(w *world) (found []Breach) {
		for _, b := range w.breaches() {
			if !strings.Contains(b.Message, "Transaction shop/other") {
				found = append(found, b)
			}
		}
		return found
	}
	assert.Empty(t, lines(about(between("blue"))))
	expect(t, about(between("green")), NoLostWrite, `changed .data.color from "green" to "red", and another client had written "green"`)
	expect(t, about(between("green")), Atomicity, `has .data.color = "red", and ought to have "green"`)
}

// Anyone who takes Transactions over does not know of one that has gone before.
func TestWhatIsLeftOfATransactionThatHadGoneAtAHandOverIsNoBreach(t *testing.T) {
	left := func(handedOver int) *world {
		w := rollBack(hooks{"-letgo": nothing, "after": func(w *world) { w.end(txn) }})
		w.evidence.HandedOver = handedOver
		return w
	}
	calls := len(left(0).evidence.Calls)
	for _, earlier := range []int{0, calls - 3} {
		expect(t, left(earlier).breaches(), NothingLeft, "shop/configmaps/txn-rollback@")
	}
	assert.Empty(t, lines(left(calls).breaches()))
}

// A compensation that was seen counts for the order of those after it, even if another
// client edits its before-image before it is on record, and it is given up. One that was
// not seen does not.
func TestACompensationCountsThatNeverGotOnRecord(t *testing.T) {
	givenUp := func(also hooks) *world {
		also["-undone2"], also["-undone1"] = nothing, func(w *world) {
			w.checkpoint(func(s tree) {
				move(s, 2, api.ItemUnresolved)
				move(s, 1, api.ItemRolledBack)
			})
		}
		return rollBack(also)
	}
	early := "which depends on it, was RollingBack"
	expect(t, givenUp(hooks{"-undo2": nothing, "-owners2": nothing}).breaches(), Order, early)
	assert.NotContains(t, lines(givenUp(hooks{}).breaches()), early)
}

// A request that was never sent has made none of what another client has, which may look the same.
func TestWhatWasNotSentHasNotLanded(t *testing.T) {
	sent := map[faultinject.Fault]bool{
		faultinject.CrashAfter: true, faultinject.LostReply: true, faultinject.FailedApplied: true, faultinject.TimedOutApplied: true,
		faultinject.Late: true, faultinject.LateAfterRestart: true,
	}
	for _, fault := range faultinject.Writes {
		assert.Equal(t, sent[fault], mayHaveLanded(&faultinject.Call{FieldManager: manager(0), Fault: fault}), fault)
	}
}

// A Delete that found nothing counts as made for what depends on it, even if another client creates the
// object before that is made.
func TestADeleteThatFoundNothingIsMade(t *testing.T) {
	after := func(meanwhile func(*world)) []Breach {
		return rollBack(hooks{
			"lock": func(w *world) { w.evidence.Runs[0].Spec.Changes[0].DependsOn = []string{"3"} },
			"do0":  func(w *world) { w.checkpoint(func(s tree) { move(s, 3, api.ItemCommitting) }); meanwhile(w) },
		}).breaches()
	}
	expect(t, after(nothing), Order, "made shop/configmaps/a@115 while item 3, which it depends on, was Committing")
	assert.Empty(t, lines(after(func(w *world) {
		w.foreignDelete(mapC)
		w.foreign(mapC, "somebody", func(o tree) { o["data"] = tree{"color": "green"} })
	})))
}

// What the Transaction deletes as well, and is not gone yet, may have its field manager.
func TestWhatIsDeletedAfterAPatchIsNotHandedOver(t *testing.T) {
	for what, c := range map[string]struct {
		then    api.ChangeType
		made    bool
		since   func(tree)
		allowed bool
	}{
		"it waits for a finalizer":     {api.Delete, true, dying, true},
		"another client deletes it":    {api.Patch, true, dying, false},
		"the Delete was not made":      {api.Delete, false, dying, false},
		"nobody has deleted it so far": {api.Delete, true, func(tree) {}, false},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld()
			w.foreign(mapA, manager(0), c.since)
			judge := &trial{Evidence: w.evidence, objects: map[Ref]*object{}}
			judge.enterHistory()
			changes := []api.Change{{Type: api.Patch}, {Type: c.then}}
			r := &run{Run: &Run{Items: []Ref{mapA, mapA}, Spec: api.TransactionSpec{Changes: changes}}, uid8: txnUID[:8]}
			end := &state{version: &version{Version: &Version{Revision: w.revision + 1}}, items: []item{{committed: true}, {committed: c.made}}}
			judge.judgeHandedOver(r, 0, end)
			assert.Equal(t, c.allowed, len(judge.breaches) == 0, lines(judge.breaches))
		})
	}
}

// undoneTogether tells of a rollback that restores values in an order, and owners after all values.
func undoneTogether(order ...int) *world {
	s := tell(nil)
	s.prepare()
	for i := range order {
		s.forward(i)
		s.checkpoint(func(status tree) {
			move(status, i, api.ItemCommitted)
			move(status, i+1, api.ItemCommitting)
		})
	}
	all := func(state api.ItemState) func(tree) {
		return func(status tree) {
			status["phase"] = "RollingBack"
			for _, i := range order {
				move(status, i, state)
			}
		}
	}
	s.checkpoint(func(status tree) { move(status, len(order), api.ItemRejected); all(api.ItemRollingBack)(status) })
	for _, i := range order {
		s.undo(i)
	}
	for _, i := range order {
		s.owners(i)
	}
	s.checkpoint(all(api.ItemRolledBack))
	s.finish(api.PhaseRolledBack)
	return s.world
}

// The owners of an item may be restored after the values of the one before it; values may not.
func TestOwnersMayComeAfterTheValuesOfTheOneBefore(t *testing.T) {
	assert.Empty(t, lines(undoneTogether(2, 1, 0).breaches()))
	expect(t, undoneTogether(2, 0, 1).breaches(), Order, "undid shop/configmaps/a@")
}

func TestWhatOthersDoIsNoBreach(t *testing.T) {
	for what, told := range map[string]*world{
		"another field is written between": rollBack(hooks{"open0": func(w *world) { w.foreign(mapA, "somebody", note) }}),
		"another field is removed between": rollBack(hooks{"open0": func(w *world) {
			w.foreign(mapA, "somebody", func(o tree) { delete(o["data"].(tree), "size") })
		}}),
		"another container is added between": rollBack(hooks{"open2": func(w *world) {
			w.foreign(webD, "somebody", func(o tree) {
				pod := o["spec"].(tree)["template"].(tree)["spec"].(tree)
				pod["containers"] = append(pod["containers"].([]any), tree{"name": "sidecar", "image": "s:1"})
			})
		}, "-undo2": func(w *world) {
			w.send("PATCH", webD, asItem(2), "", func(o tree) {
				o["spec"].(tree)["template"].(tree)["spec"].(tree)["containers"].([]any)[0].(tree)["image"] = "web:1"
			})
		}}),
		"a removed container comes back before one that was added": rollBack(containers("first", "web", "theirs")),
		"a controller writes the status": rollBack(hooks{"do2": func(w *world) {
			w.foreign(webD, "kube-controller-manager", func(o tree) {
				o["status"] = tree{"replicas": int64(1)}
				o["metadata"].(tree)["annotations"] = tree{"deployment.kubernetes.io/revision": "2"}
			})
		}}),
		"a controller completes what was made": rollBack(hooks{"open1": func(w *world) { w.foreign(mapB, "kube-controller-manager", note) }}),
		"somebody deletes what was made":       rollBack(hooks{"open1": func(w *world) { w.foreignDelete(mapB) }, "-undo1": nothing}),
		"somebody deletes and makes it again": rollBack(hooks{"open1": func(w *world) {
			w.foreignDelete(mapB)
			w.foreign(mapB, "somebody", func(o tree) { o["data"] = tree{"theirs": "2"} })
		}, "-undo1": nothing}),
		"somebody deletes what was changed": rollBack(hooks{"open0": func(w *world) { w.foreignDelete(mapA) },
			"-undo0": nothing, "-undone0": unresolved("Drifted", "another client has deleted ConfigMap a"), "-end": failedEnd}),
		"a conflict that is kept and named": rollBack(hooks{"open0": yellow, "-undo0": nothing,
			"-undone0": unresolved("FieldConflict", "ConfigMap a", ".data.color"), "-end": failedEnd}),
		"Force, with the conflict on record": forced(rollBack(hooks{"open0": yellow, "undo0": func(w *world) {
			w.checkpoint(func(s tree) {
				s["items"].([]any)[0].(tree)["conflicts"] = []any{tree{"field": ".data.color", "managers": []any{"somebody"}, "now": "\"yellow\""}}
			})
		}})),
		"Force brings back a container that another client has removed": forced(rollBack(hooks{
			"open2": func(w *world) { w.foreign(webD, "somebody", func(o tree) { containerList(o, "theirs") }) },
			"-undo2": func(w *world) {
				w.checkpoint(func(s tree) {
					s["items"].([]any)[2].(tree)["conflicts"] = []any{tree{"field": ".spec.template.spec.containers[name=\"web\"].image", "managers": []any{"somebody"}}}
				})
				w.send("PATCH", webD, asItem(2), "", func(o tree) { containerList(o, "web", "theirs") })
			},
		})),
		"the old value is set again by somebody": rollBack(hooks{"open0": func(w *world) {
			w.foreign(mapA, "somebody", func(o tree) { o["data"].(tree)["color"] = "red" })
		}, "-undo0": nothing}),
		"the new value is there before the change is sent": commit(hooks{"do0": func(w *world) {
			w.foreign(mapA, "somebody", func(o tree) { o["data"].(tree)["color"] = "blue" })
		}, "-do0": nothing}),
		"field managers that stay, and are named": commit(hooks{"-handover": nothing, "-end": func(w *world) {
			w.checkpoint(func(s tree) {
				s["phase"], s["completionTime"] = "Committed", "2026-01-01T00:00:10Z"
				delete(s, "rollbackRef")
				for _, i := range []int{0, 2} {
					s["items"].([]any)[i].(tree)["reason"] = "ManagerStays"
				}
			})
		}}),
		"the stand-in of a lock goes": commit(hooks{"do1": func(w *world) {
			standIn := lockOf(mapC)
			standIn.Namespace = "janus-system"
			w.send("POST", standIn, faultinject.Call{}, "Lease", func(o tree) { o["spec"] = copyOf(w.live[lockOf(mapC)])["spec"] })
			w.remove(standIn, "")
		}}),
		"the change is written over after the commit": commit(hooks{"after": yellow}),
		"all is deleted with the namespace": rollBack(hooks{"after": func(w *world) {
			for ref := range w.live {
				w.end(ref)
			}
		}}),
		"the Transaction is deleted in the middle": commit(hooks{
			"-do1": nothing, "-record1": nothing, "-do2": nothing, "-record2": nothing, "-do3": nothing, "-record3": nothing, "-handover": nothing,
			"release": func(w *world) {
				w.foreign(txn, "tester", func(o tree) { o["metadata"].(tree)["deletionTimestamp"] = "2026-01-01T00:00:00Z" })
			},
			"-finalizer": func(w *world) {
				o := copyOf(w.live[txn])
				body := tree{"metadata": condition(o)}
				body["metadata"].(tree)["finalizers"] = []any{}
				w.end(txn)
				w.request(faultinject.Call{Method: "PATCH", FieldManager: "janusd"}, txn, body, o)
			},
			"-end": nothing,
		}),
	} {
		t.Run(what, func(t *testing.T) { assert.Empty(t, told.breaches(), lines(told.breaches())) })
	}
}

func TestWhatJanusMayDoIsNoBreach(t *testing.T) {
	const other = "cccccccc-0000-4000-8000-000000000009"
	for what, told := range map[string]*world{
		"a Patch that changes nothing": commit(hooks{"begin": func(w *world) {
			w.foreign(mapA, "tester", func(o tree) { o["data"].(tree)["color"] = "blue" })
		}, "-do0": func(w *world) {
			c := asItem(0)
			c.Method = "PATCH"
			w.request(c, mapA, tree{"kind": "ConfigMap", "metadata": condition(w.live[mapA])}, w.live[mapA])
		}}),
		"a request whose answer nobody has": commit(hooks{"-do0": func(w *world) {
			c := w.do(0)
			c.Code, c.Answer = 0, nil
		}}),
		"a deletion that waits for a finalizer": rollBackAll(hooks{"-do3": func(w *world) {
			met := condition(w.live[mapC])
			c := w.send("DELETE", mapC, faultinject.Call{User: account}, "DeleteOptions", func(o tree) {
				o["metadata"].(tree)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			})
			c.Body = encodedAs(tree{"kind": "DeleteOptions", "preconditions": met})
			w.foreign(mapC, "somebody", func(o tree) { delete(o["metadata"].(tree), "finalizers") })
			w.end(mapC)
		}}),
		"a deletion that answers with the object": commit(hooks{"-do3": func(w *world) {
			was := w.live[mapC]
			w.remove(mapC, account).Answer = encodedAs(was)
		}}),
		"a change that lands when another client has taken the lock in time": commit(hooks{"do0": func(w *world) {
			w.lock(mapA, other, time.Hour)
			w.remove(lockOf(mapA), "")
		}}),
		"a lock that another client has deleted": commit(hooks{"do0": func(w *world) { w.foreignDelete(lockOf(mapA)) }}),
		"a lock that landed late, taken before its time": commit(hooks{"after": func(w *world) {
			w.lock(mapA, txnUID, 0)
			w.lock(mapA, other, time.Minute)
			w.remove(lockOf(mapA), "")
		}}),
		"a lock of a Transaction that is gone, taken before its time": commit(hooks{"after": func(w *world) {
			w.end(txn)
			w.lock(mapA, txnUID, 0)
			w.lock(mapA, other, time.Minute)
			w.remove(lockOf(mapA), "")
		}}),
		"clocks that were turned": func() *world {
			w := commit(hooks{"handover": func(w *world) { w.lock(mapA, other, time.Minute); w.remove(lockOf(mapA), "") }})
			w.evidence.ClocksTurned = true
			return w
		}(),
		"a recovery": rollBack(hooks{
			"-undo0": nothing, "-owners0": nothing, "-undone0": unresolved("Terminating", "ConfigMap a"), "-end": failedEnd,
			"after": func(w *world) {
				w.checkpoint(func(s tree) {
					s["phase"], s["recoveries"] = "RollingBack", int64(1)
					delete(s, "completionTime")
					move(s, 0, api.ItemRollingBack)
				})
				w.undo(0)
				w.owners(0)
				w.checkpoint(func(s tree) {
					s["phase"], s["completionTime"] = "RolledBack", "2026-01-01T00:00:20Z"
					move(s, 0, api.ItemRolledBack)
				})
			}}),
		"a rollback that is suspended": rollBack(hooks{"undo1": func(w *world) {
			w.checkpoint(func(s tree) { s["suspendTime"] = "2026-01-01T00:00:10Z"; move(s, 1, api.ItemCommitted) })
			w.checkpoint(func(s tree) { delete(s, "suspendTime"); move(s, 1, api.ItemRollingBack) })
		}}),
		"a change that is done again after another client has undone it": commit(hooks{"record0": func(w *world) {
			w.foreign(mapA, "somebody", func(o tree) { o["data"].(tree)["color"] = "red"; own(o, manager(0), false) })
			w.do(0)
		}}),
		"its own ServiceAccount": commit(hooks{"after": func(w *world) {
			w.request(faultinject.Call{Method: "GET"}, Ref{"serviceaccounts", ns, "deployer"}, nil, nil)
		}}),
		"a secret in a Secret, and in what was asked for": func() *world {
			w := commit(hooks{"begin": func(w *world) {
				w.foreign(Ref{"secrets", ns, "s"}, "tester", func(o tree) { o["data"] = tree{"p": "correct-horse"} })
			}, "do0": func(w *world) {
				w.foreign(txn, "tester", func(o tree) { o["spec"] = tree{"changes": "correct-horse"} })
				w.checkpoint(func(tree) {})
			}})
			w.evidence.Canary = "correct-horse"
			return w
		}(),
	} {
		t.Run(what, func(t *testing.T) { assert.Empty(t, told.breaches(), lines(told.breaches())) })
	}
}

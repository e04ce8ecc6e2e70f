package oracle

import (
	"testing"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// hooks are what is different in a story.
type hooks = map[string]func(*world)

// wrong is a story in which a guarantee is broken.
type wrong struct {
	what      string
	guarantee string
	message   string
	told      *world
}

func note(o tree) { o["data"].(tree)["note"] = "mine" }

func TestBrokenIntentsAreFound(t *testing.T) {
	for _, c := range []wrong{
		{"a change before its intent", DurableIntent, "item 0 (Patch shop/configmaps/a) do: PATCH configmaps/a#0 made shop/configmaps/a@",
			commit(hooks{"intent": func(w *world) {
				w.do(0)
				w.checkpoint(func(s tree) { s["phase"] = "Committing"; move(s, 0, api.ItemCommitting) })
			}, "-do0": nothing})},
		{"a change after its item was written off", DurableIntent, "item 3 (Delete shop/configmaps/c) do: DELETE configmaps/c#0 made",
			rollBack(hooks{"open2": func(w *world) { w.do(3) }})},
		{"a compensation without intent", DurableIntent, "undo: PATCH configmaps/a#1 made",
			rollBack(hooks{"open0": func(w *world) { w.undo(0) }, "-undo0": nothing})},
		{"a hand-over before all is committed", DurableIntent, "hand-over: PATCH configmaps/a#1 made",
			commit(hooks{"do3": func(w *world) { w.handOver(0) }})},
		{"a request that is neither", DurableIntent, "stray write: PUT configmaps/a#0 made",
			commit(hooks{"-do0": func(w *world) {
				w.send("PUT", mapA, asItem(0), "ConfigMap", func(o tree) { o["data"].(tree)["color"] = "blue" })
			}})},
		{"no precondition", DurableIntent, `PATCH configmaps/a#0 landed on shop/configmaps/a without a precondition`,
			commit(hooks{"-do0": func(w *world) { w.do(0).Body = []byte(`{"kind":"ConfigMap","metadata":{}}`) }})},
		{"no precondition of a deletion", DurableIntent, `DELETE configmaps/c#0 landed on shop/configmaps/c without a precondition`,
			commit(hooks{"-do3": func(w *world) { w.do(3).Body = []byte(`{}`) }})},
		{"another precondition", DurableIntent, "though it was to meet uid u at 7",
			commit(hooks{"-do0": func(w *world) {
				w.do(0).Body = []byte(`{"kind":"ConfigMap","metadata":{"uid":"u","resourceVersion":"7"}}`)
			}})},
		{"no before-image in the status", DurableIntent, "item 0 (Patch shop/configmaps/a): PATCH configmaps/a#0 made shop/configmaps/a@115 and the Transaction (@114) records no before-image",
			commit(hooks{"intent": func(w *world) {
				w.checkpoint(func(s tree) { delete(s["items"].([]any)[0].(tree), "before") })
			}})},
		{"no before-image stored", DurableIntent, "of digest sha256:",
			commit(hooks{"do0": func(w *world) {
				w.evidence.History = slicesWithout(w.evidence.History, imagesOf)
			}})},
		{"another before-image stored", DurableIntent, "was never stored before that; found [sha256:",
			commit(hooks{"prepared": func(w *world) {
				for i := range w.evidence.History {
					if v := &w.evidence.History[i]; v.Ref == imagesOf {
						v.Object.Object["data"].(tree)["0_key"] = "{}"
					}
				}
			}})},
		{"a before-image of what never was", DurableIntent, "the before-image is of uid",
			commit(hooks{"-prepared": func(w *world) {
				w.checkpoint(func(s tree) {
					w.recordImages(s)
					s["items"].([]any)[0].(tree)["before"].(tree)["resourceVersion"] = "55"
				})
			}})},
		{"a write to what is no target", DurableIntent, "PATCH configmaps/other#0 landed on shop/configmaps/other, which is no target",
			commit(hooks{"after": func(w *world) {
				other := Ref{"configmaps", ns, "other"}
				w.foreign(other, "tester", func(tree) {})
				w.send("PATCH", other, asItem(0), "", func(tree) {})
			}})},
		{"a write to a target that is no item's", DurableIntent, `is no item's: manager "else"`,
			commit(hooks{"do0": func(w *world) {
				w.send("PATCH", mapA, faultinject.Call{User: account, FieldManager: "else"}, "", func(tree) {})
			}})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func slicesWithout(all History, ref Ref) History {
	var out History
	for _, v := range all {
		if v.Ref != ref {
			out = append(out, v)
		}
	}
	return out
}

func TestBrokenCommitsAreFound(t *testing.T) {
	for _, c := range []wrong{
		{"a Patch that did not land", Atomicity, "item 0 (Patch shop/configmaps/a): it is Committed (@114), and nothing that was stored",
			commit(hooks{"-do0": nothing})},
		{"a change that says that it was not written", Atomicity, "item 0 (Patch shop/configmaps/a): it says (@",
			commit(hooks{"do1": func(w *world) {
				w.checkpoint(func(s tree) { s["items"].([]any)[0].(tree)["unchanged"] = true })
			}})},
		{"a Create that did not land", Atomicity, "item 1 (Create shop/configmaps/b): it is Committed", commit(hooks{"-do1": nothing, "-handover": nothing})},
		{"a Create that does not say who has made the object", Atomicity, "item 1 (Create shop/configmaps/b): it is Committed", commit(hooks{"-do1": func(w *world) {
			w.send("POST", mapB, asItem(1), "ConfigMap", func(o tree) {
				o["data"] = tree{"x": "1"}
				own(o, manager(1), true)
			})
		}})},
		{"an Update that did not land", Atomicity, "item 2 (Update shop/deployments.apps/web): it is Committed", commit(hooks{"-do2": nothing})},
		{"a Delete that did not land", Atomicity, "item 3 (Delete shop/configmaps/c): it is Committed (@120), and shop/configmaps/c@102", commit(hooks{"-do3": nothing})},
		{"a Delete that still waits", Atomicity, "item 3 (Delete shop/configmaps/c): it is Committed",
			commit(hooks{"-do3": func(w *world) {
				w.send("DELETE", mapC, faultinject.Call{User: account}, "DeleteOptions", func(o tree) {
					o["metadata"].(tree)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
				}).Body = encodedAs(tree{"preconditions": condition(w.live[mapC])})
			}})},
		{"a Patch with another value", Atomicity, "made by PATCH configmaps/a#0, does not have its content",
			commit(hooks{"-do0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "ConfigMap", func(o tree) { o["data"].(tree)["color"] = "bleu" })
			}})},
		{"an Update that leaves a label", Atomicity, "made by PUT deployments/web#0, does not have its content",
			commit(hooks{"begin": func(w *world) {
				w.foreign(webD, "tester", func(o tree) { o["metadata"].(tree)["labels"] = tree{"a": "b"} })
			}})},
		{"a hand-over that changes a value", Atomicity, "the hand-over PATCH configmaps/a#1 changed .data.color in shop/configmaps/a@",
			commit(hooks{"handover": func(w *world) {
				w.send("PATCH", mapA, faultinject.Call{User: account, FieldManager: defaultManager}, "", func(o tree) { o["data"].(tree)["color"] = "green" })
			}})},
		{"a hand-over that makes Janus an owner", Atomicity, "has made janus the owner of .data in shop/configmaps/a@",
			commit(hooks{"handover": func(w *world) {
				w.send("PATCH", mapA, faultinject.Call{User: account, FieldManager: defaultManager}, "", func(o tree) {
					own(o, manager(0), false)
					own(o, defaultManager, true)
				})
			}})},
		{"a hand-over that leaves a field to nobody", Atomicity, "has left .data.color in shop/configmaps/a@",
			commit(hooks{"begin": colored, "handover": func(w *world) {
				w.send("PATCH", mapA, faultinject.Call{User: account, FieldManager: defaultManager}, "", func(o tree) { o["metadata"].(tree)["managedFields"] = []any{} })
			}})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestBrokenRollbacksAreFound(t *testing.T) {
	failed := func(change func(tree)) func(*world) {
		return func(w *world) {
			w.checkpoint(func(s tree) {
				s["phase"], s["completionTime"] = "Failed", "2026-01-01T00:00:10Z"
				change(s)
			})
		}
	}
	for _, c := range []wrong{
		{"a value that stays", Atomicity, `shop/configmaps/a@129 has .data.color = "blue", and ought to have "red"`, rollBack(hooks{"-undo0": nothing})},
		{"a value of a nested list that stays", Atomicity, `has .spec.template.spec.containers = [{"image":"web:2"`, rollBack(hooks{"-undo2": nothing})},
		{"a created object that stays", Atomicity, "shop/configmaps/b@116 is still there, and it was not before", rollBack(hooks{"-undo1": nothing})},
		{"a deleted object that does not come back", Atomicity, "shop/configmaps/c is gone, and it was there before (@102)", rollBackAll(hooks{"-undo3": nothing})},
		{"a deleted object that comes back otherwise", Atomicity, `shop/configmaps/c@`,
			rollBackAll(hooks{"-undo3": func(w *world) {
				w.send("POST", mapC, asItem(3), "ConfigMap", func(o tree) { o["data"] = tree{"left": "other"} })
			}})},
		{"another value", Atomicity, `has .data.color = "rd", and ought to have "red"`,
			rollBack(hooks{"-undo0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "", func(o tree) { o["data"].(tree)["color"] = "rd" })
			}})},
		{"a field that the change never had", Atomicity, `has .data.size = nothing, and ought to have "small"`,
			rollBack(hooks{"-undo0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "", func(o tree) { o["data"] = tree{"color": "red"} })
			}})},
		{"a foreign field that is lost", Atomicity, `has .data.note = nothing, and ought to have "mine"`,
			rollBack(hooks{"open0": func(w *world) { w.foreign(mapA, "somebody", note) }, "-undo0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "", func(o tree) { o["data"] = copyOf(w.images[0])["data"] })
			}})},
		{"a removed item that comes back behind the others", Atomicity,
			`has the items of .spec.template.spec.containers in the order [[name="web"] [name="first"]], and they were in the order [[name="first"] [name="web"]]`,
			rollBack(containers("web", "theirs", "first"))},
		{"an owner that stays", Atomicity, "still has the field manager janus-aaaabbbb-0", rollBack(hooks{"-owners0": nothing})},
		{"an owner that is lost", Atomicity, "lacks an entry of managedFields that it had @101",
			rollBack(hooks{"-owners0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "", func(o tree) { o["metadata"].(tree)["managedFields"] = []any{} })
			}})},
		{"an owner that is lost where another client has written", Atomicity, "lacks an entry of managedFields that it had @101",
			rollBack(hooks{"open0": labelled, "-owners0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "", func(o tree) { o["metadata"].(tree)["managedFields"] = []any{} })
			}})},
		{"an owner with another time", Atomicity, "has an entry of managedFields that it had not @101",
			rollBack(hooks{"owners0": func(w *world) {
				w.send("PATCH", mapA, asItem(0), "", func(o tree) {
					o["metadata"].(tree)["managedFields"].([]any)[0].(tree)["time"] = "2026-02-02T00:00:00Z"
				})
			}})},
		{"a change that lands after the end", Atomicity, `has .data.color = "blue", and ought to have "red"`,
			rollBack(hooks{"after": func(w *world) { w.do(0) }})},
		{"a Failed item that was rolled back in part", Atomicity, "configmaps/b@116 is still there",
			rollBack(hooks{"-undo1": nothing, "-undone0": unresolved("Drifted", "another client has written ConfigMap a"), "-end": failed(func(tree) {})})},
		{"an Unresolved item without a reason", Atomicity, `it is Unresolved with reason "" and message ""`,
			rollBack(hooks{"-undone0": unresolved("", ""), "-end": failed(func(tree) {})})},
		{"an Unresolved item that does not say which object", Atomicity, "the message does not name a: it blew up",
			rollBack(hooks{"-undone0": unresolved("Drifted", "it blew up"), "-end": failed(func(tree) {})})},
		{"a conflict without fields", Atomicity, "it is Unresolved for a conflict, and lists no field",
			rollBack(hooks{"-undone0": unresolved("FieldConflict", "ConfigMap a"), "-end": failed(func(tree) {})})},
		{"a conflict that is not all that is left", Atomicity, `has .data.color = "blue"`,
			rollBack(hooks{"-undo0": nothing, "-undone0": unresolved("FieldConflict", "ConfigMap a", ".data.size"), "-end": failed(func(tree) {})})},
		{"a conflict of a field whose name begins alike", Atomicity, `has .data.color = "blue"`,
			rollBack(hooks{"-undo0": nothing, "-undone0": unresolved("FieldConflict", "ConfigMap a", ".data.col", ".data.color2"), "-end": failed(func(tree) {})})},
		{"Failed without having begun, and a write", Atomicity, "it is Failed without having begun, and PATCH configmaps/a#0 made",
			func() *world {
				s := tell(nil)
				s.create()
				s.do(0)
				failed(func(tree) {})(s.world)
				return s.world
			}()},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

// unresolved is a checkpoint that gives up on the first item.
func unresolved(reason, message string, fields ...string) func(*world) {
	return func(w *world) {
		w.checkpoint(func(s tree) {
			move(s, 0, api.ItemUnresolved)
			item := s["items"].([]any)[0].(tree)
			item["reason"], item["message"] = reason, message
			var found []any
			for _, f := range fields {
				found = append(found, tree{"field": f, "managers": []any{"somebody"}})
			}
			item["conflicts"] = found
		})
	}
}

// containers is a story in which an Update removes the first of two containers, another
// client adds one, and a rollback leaves them in the given order.
func containers(order ...string) hooks {
	return hooks{
		"begin":  func(w *world) { w.foreign(webD, "tester", func(o tree) { containerList(o, "first", "web") }) },
		"open2":  func(w *world) { w.foreign(webD, "somebody", func(o tree) { containerList(o, "web", "theirs") }) },
		"-undo2": func(w *world) { w.send("PATCH", webD, asItem(2), "", func(o tree) { containerList(o, order...) }) },
	}
}

// containerList gives a Deployment containers of these names alone.
func containerList(o tree, names ...string) {
	var list []any
	for _, name := range names {
		list = append(list, tree{"name": name, "image": name + ":1"})
	}
	o["spec"].(tree)["template"].(tree)["spec"] = tree{"containers": list}
}

func TestBrokenLocksAreFound(t *testing.T) {
	const other = "cccccccc-0000-4000-8000-000000000009"
	for _, c := range []wrong{
		{"a lock taken before its time", LockExclusion, "was held until 2026-01-01T00:05:00Z",
			commit(hooks{"handover": func(w *world) { w.lock(mapA, other, time.Minute) }})},
		{"a lock taken before its holder has let go of the finalizer", LockExclusion, "was held until 2026-01-01T00:05:00Z",
			commit(hooks{"-release": nothing, "-finalizer": nothing, "after": func(w *world) { w.lock(mapA, other, time.Minute) }})},
		{"a lock taken before its holder has ended", LockExclusion, "was held until 2026-01-01T00:05:00Z",
			commit(hooks{"-release": nothing, "finalizer": func(w *world) { w.lock(mapA, other, time.Minute) }})},
		{"a lock taken without being counted", LockExclusion, "and leaseTransitions from 0 to 0",
			commit(hooks{"handover": func(w *world) {
				w.send("PUT", lockOf(mapA), faultinject.Call{}, "Lease", func(o tree) {
					o["spec"].(tree)["holderIdentity"], o["spec"].(tree)["renewTime"] = "shop/txn/"+other, "2026-01-01T01:00:00Z"
				})
			}})},
		{"a change without a lock", LockExclusion, "while its lock shop/janus-lock-a was held by nobody",
			commit(hooks{"do0": func(w *world) { w.remove(lockOf(mapA), "") }})},
		{"a lock in another place", LockExclusion, "its lock is away/janus-lock-a, where no Transaction of another namespace looks for it",
			commit(hooks{"do0": func(w *world) {
				w.evidence.Home = "janus-system"
				w.checkpoint(func(s tree) { s["items"].([]any)[0].(tree)["lockLease"] = "away/janus-lock-a" })
			}})},
		{"a lock that is given back too early", LockExclusion, "its lock shop/leases.coordination.k8s.io/janus-lock-c@116 was deleted by DELETE leases/janus-lock-c#0 while it was Committing",
			commit(hooks{"do1": func(w *world) { w.remove(lockOf(mapC), "") }, "-do3": func(w *world) { w.lock(mapC, txnUID, 0); w.do(3) }})},
		{"a change under another's lock", LockExclusion, "while its lock shop/janus-lock-a was held by shop/txn/" + other,
			commit(hooks{"do0": func(w *world) {
				w.remove(lockOf(mapA), "")
				w.lock(mapA, other, 0)
			}})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestWhatIsLeftIsFound(t *testing.T) {
	for _, c := range []wrong{
		{"a lock", NothingLeft, "Transaction shop/txn is Committed, and shop/leases.coordination.k8s.io/janus-lock-a@107 is still held", commit(hooks{"-release": nothing})},
		{"a finalizer", NothingLeft, "still has the finalizer backup.janus.io/lease-cleanup", commit(hooks{"-finalizer": nothing})},
		{"before-images after a commit", NothingLeft, "and its before-images shop/configmaps/txn-rollback@",
			commit(hooks{"-letgo": func(w *world) {
				w.send("PATCH", imagesOf, faultinject.Call{}, "", func(o tree) { delete(o["metadata"].(tree), "finalizers") })
			}})},
		{"a finalizer of before-images", NothingLeft, "still has the finalizer backup.janus.io/before-image", rollBack(hooks{"-letgo": nothing})},
		{"before-images that nothing names", NothingLeft, "shop/configmaps/txn-rollback-2@111 is still there, which it does not name: ConfigMap/txn-rollback",
			rollBack(hooks{"images": func(w *world) {
				w.foreign(Ref{"configmaps", ns, "txn-rollback-2"}, "janusd", func(o tree) {
					o["metadata"].(tree)["ownerReferences"] = []any{tree{"uid": txnUID}}
				})
			}})},
		{"a field manager after a commit", NothingLeft, "item 0 (Patch shop/configmaps/a): it is Committed (@130), and shop/configmaps/a@114 still has the field manager janus-aaaabbbb-0",
			commit(hooks{"-handover": func(w *world) { w.handOver(2) }})},
		{"a lock of a Transaction that is gone", NothingLeft, "Transaction shop/txn is gone, and shop/leases",
			rollBack(hooks{"-release": nothing, "after": func(w *world) { w.end(txn) }})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestEndlessRunsAreFound(t *testing.T) {
	for _, c := range []wrong{
		{"no end", Termination, `Transaction shop/txn is "Committing" at the end`, commit(hooks{"-end": nothing})},
		{"no deletion", Termination, "was deleted and is still there",
			commit(hooks{"-finalizer": nothing, "after": func(w *world) {
				w.foreign(txn, "tester", func(o tree) { o["metadata"].(tree)["deletionTimestamp"] = "2026-01-01T00:00:00Z" })
			}})},
		{"no time of the end", Termination, "has no completionTime", commit(hooks{"-end": func(w *world) {
			w.checkpoint(func(s tree) { s["phase"] = "Committed" })
		}})},
		{"never seen", Termination, "Transaction shop/txn was never seen", func() *world {
			w := commit(nil)
			w.evidence.History = slicesWithout(w.evidence.History, txn)
			return w
		}()},
		{"too many requests", Termination, "99999 requests were made after the last fault for 4 items", func() *world {
			w := commit(nil)
			w.evidence.CallsSinceFault = 99999
			return w
		}()},
		{"too many requests in a minute of two processes", Termination, "9001 requests were made after the last fault for 4 items, more than 9000", func() *world {
			w := commit(nil)
			w.evidence.CallsSinceFault, w.evidence.Processes, w.evidence.SinceFault = 9001, 2, time.Minute
			return w
		}()},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestOtherIdentitiesAreFound(t *testing.T) {
	call := func(c faultinject.Call, ref Ref) *world {
		return commit(hooks{"after": func(w *world) { w.request(c, ref, nil, nil).Code = 403 }})
	}
	other := Ref{"configmaps", ns, "elsewhere"}
	for _, c := range []wrong{
		{"a read of a target as Janus", Identity, `GET configmaps/a#0 is about the target shop/configmaps/a and was made as ""`, call(faultinject.Call{Method: "GET"}, mapA)},
		{"a dry run as Janus", Identity, `was made as "", not as system:serviceaccount:shop:deployer`, call(faultinject.Call{Method: "PATCH", DryRun: true}, mapA)},
		{"a write as another", Identity, "was made as system:serviceaccount:shop:admin, which no Transaction names", call(faultinject.Call{Method: "PATCH", User: "system:serviceaccount:shop:admin"}, mapA)},
		{"a Transaction written as the ServiceAccount", Identity, "is about shop/transactions.backup.janus.io/txn, which is Janus' own", call(faultinject.Call{Method: "PUT", User: account}, txn)},
		{"a lock taken as the ServiceAccount", Identity, "is about shop/leases.coordination.k8s.io/janus-lock-a, which is Janus' own", call(faultinject.Call{Method: "POST", User: account}, lockOf(mapA))},
		{"a before-image read as the ServiceAccount", Identity, "is about shop/configmaps/txn-rollback, which is Janus' own", call(faultinject.Call{Method: "GET", User: account}, imagesOf)},
		{"a read of everything as Janus", Identity, "GET configmaps#0 reads all configmaps", call(faultinject.Call{Method: "GET"}, Ref{"configmaps", ns, ""})},
		{"a write of another object as Janus", Identity, "writes shop/configmaps/elsewhere as Janus itself", call(faultinject.Call{Method: "POST"}, other)},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestIllegalMovesAreFound(t *testing.T) {
	check := func(change func(tree)) func(*world) {
		return func(w *world) { w.checkpoint(change) }
	}
	for _, c := range []wrong{
		{"a phase that goes back", Phases, `went from "Committing" (@113) to "Preparing"`, commit(hooks{"record0": check(func(s tree) { s["phase"] = "Preparing" })})},
		{"an item that goes back", Phases, "item 0 went from Committed", commit(hooks{"do1": check(func(s tree) { move(s, 0, api.ItemPrepared) })})},
		{"a compensation that is withdrawn, and not by a suspension", Phases, "item 1 went from RollingBack", rollBack(hooks{"undo1": check(func(s tree) { move(s, 1, api.ItemCommitted) })})},
		{"an item settled twice", Phases, "item 1 went from Unresolved", commit(hooks{"do1": func(w *world) {
			check(func(s tree) { move(s, 1, api.ItemUnresolved) })(w)
			check(func(s tree) { move(s, 1, api.ItemCommitting) })(w)
		}})},
		{"an item that is to be made after all", Phases, "item 2 went from Skipped", commit(hooks{"do1": func(w *world) {
			check(func(s tree) { move(s, 2, api.ItemSkipped) })(w)
			check(func(s tree) { move(s, 2, api.ItemPending) })(w)
		}})},
		{"an item that skips a state", Phases, "item 3 went from Prepared", commit(hooks{"do1": check(func(s tree) { move(s, 3, api.ItemCommitted) })})},
		{"a version that jumps", Phases, "status.version went from 3 (@113) to 8", commit(hooks{"do0": check(func(s tree) { s["version"] = int64(8) })})},
		{"items that are gone", Phases, "it had 4 items (@113) and has 5", commit(hooks{"do0": check(func(s tree) { s["items"] = append(s["items"].([]any), tree{}) })})},
		{"a boolean that is wrong", Phases, "with prepared=true committed=false rolledBack=false", commit(hooks{"do1": check(func(s tree) {
			s["items"].([]any)[0].(tree)["committed"] = false
		})})},
		{"RolledBack with an item that is not", Phases, "Transaction shop/txn is RolledBack", rollBack(hooks{"-undone0": nothing})},
		{"Committed with an item that is not", Phases, "is Committed (@", commit(hooks{"-record3": nothing})},
		{"a recovery that is not counted", Phases, "status.recoveries went from 0", rollBack(hooks{
			"-undone0": unresolved("Terminating", "ConfigMap a"),
			"-end":     check(func(s tree) { s["phase"], s["completionTime"] = "Failed", "now" }),
			"after":    check(func(s tree) { s["phase"] = "RollingBack"; delete(s, "completionTime"); move(s, 0, api.ItemRollingBack) }),
		})},
		{"a recovery that nobody has asked for", Phases, "status.handledRecovery went from", rollBack(hooks{
			"-undone0": unresolved("Terminating", "ConfigMap a"),
			"-end":     check(func(s tree) { s["phase"], s["completionTime"] = "Failed", "now" }),
			"after": check(func(s tree) {
				s["phase"], s["handledRecovery"] = "RollingBack", "now"
				delete(s, "completionTime")
				move(s, 0, api.ItemRollingBack)
			}),
		})},
		{"an item that is set aside and rolled back", Phases, "and set aside, with reason", rollBack(hooks{"undo1": check(func(s tree) {
			s["items"].([]any)[2].(tree)["setAside"] = true
		})})},
		{"too many recoveries", Phases, "status.recoveries went from 0", rollBack(hooks{
			"-undone0": unresolved("Terminating", "ConfigMap a"),
			"-end":     check(func(s tree) { s["phase"], s["completionTime"] = "Failed", "now" }),
			"after": check(func(s tree) {
				s["phase"], s["recoveries"] = "RollingBack", int64(4)
				delete(s, "completionTime")
				move(s, 0, api.ItemRollingBack)
			}),
		})},
		{"an end without a time", Phases, "that it has a completionTime is false", commit(hooks{"-end": check(func(s tree) { s["phase"] = "Committed" })})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestEvidenceThatIsNotWholeIsFound(t *testing.T) {
	w := commit(nil)
	w.evidence.History = slicesWithout(w.evidence.History, mapB)
	expect(t, w.breaches(), Whole, "POST configmaps/b#0 made shop/configmaps/b@116, which the history lacks")
	w = commit(nil)
	h := w.evidence.History
	h[4], h[9] = h[9], h[4]
	expect(t, w.breaches(), Whole, "the history is not in order")
}

package oracle

import (
	"fmt"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// story is a Transaction of four items, told step by step. A test does something
// before a step, or leaves it out, or does another instead.
type story struct {
	*world
	before  map[string]func(*world)
	instead map[string]func(*world)
	spec    api.TransactionSpec
	// names of the steps, in order
	told []string
}

// tell begins a story: hooks come as pairs of a step, with "-" before it for
// instead, and a function.
func tell(hooks map[string]func(*world)) *story {
	s := &story{world: newWorld(), before: map[string]func(*world){}, instead: map[string]func(*world){}, spec: spec()}
	for step, act := range hooks {
		if step[0] == '-' {
			s.instead[step[1:]] = act
		} else {
			s.before[step] = act
		}
	}
	return s
}

// nothing is for a step that is left out.
func nothing(*world) {}

func (s *story) step(name string, act func()) {
	s.told = append(s.told, name)
	if hook := s.before[name]; hook != nil {
		hook(s.world)
	}
	if other := s.instead[name]; other != nil {
		other(s.world)
		return
	}
	act()
}

// commit tells of a Transaction that commits.
func commit(hooks map[string]func(*world)) *world {
	s := tell(hooks)
	s.prepare()
	for i := range targets {
		s.forward(i)
		s.step(fmt.Sprint("record", i), func() {
			s.checkpoint(func(status tree) {
				move(status, i, api.ItemCommitted)
				if i+1 < len(targets) {
					move(status, i+1, api.ItemCommitting)
				}
			})
		})
	}
	s.step("handover", func() {
		for _, i := range []int{0, 1, 2} {
			s.handOver(i)
		}
	})
	s.finish(api.PhaseCommitted)
	return s.world
}

// rollBack tells of one whose last change is refused.
func rollBack(hooks map[string]func(*world)) *world {
	s := tell(hooks)
	s.prepare()
	last := len(targets) - 1
	for i := range last {
		s.forward(i)
		s.step(fmt.Sprint("record", i), func() {
			s.checkpoint(func(status tree) {
				move(status, i, api.ItemCommitted)
				move(status, i+1, api.ItemCommitting)
			})
		})
	}
	s.compensate(last, func() {
		s.checkpoint(func(status tree) {
			move(status, last, api.ItemRejected)
			status["phase"] = "RollingBack"
		})
	})
	return s.world
}

// rollBackAll tells of one that turns round after its last change, as when its time
// is over just then.
func rollBackAll(hooks map[string]func(*world)) *world {
	s := tell(hooks)
	s.prepare()
	for i := range targets {
		s.forward(i)
		s.step(fmt.Sprint("record", i), func() {
			s.checkpoint(func(status tree) {
				move(status, i, api.ItemCommitted)
				if i+1 < len(targets) {
					move(status, i+1, api.ItemCommitting)
				} else {
					status["phase"] = "RollingBack"
				}
			})
		})
	}
	s.compensate(len(targets), func() {})
	return s.world
}

// compensate tells of the compensation of the first n items.
func (s *story) compensate(n int, turn func()) {
	s.step("turn", turn)
	for i := n - 1; i >= 0; i-- {
		s.step(fmt.Sprint("open", i), func() {
			s.checkpoint(func(status tree) { move(status, i, api.ItemRollingBack) })
		})
		s.step(fmt.Sprint("undo", i), func() { s.undo(i) })
		s.step(fmt.Sprint("owners", i), func() { s.owners(i) })
		s.step(fmt.Sprint("undone", i), func() {
			s.checkpoint(func(status tree) { move(status, i, api.ItemRolledBack) })
		})
	}
	s.finish(api.PhaseRolledBack)
}

// prepare tells of everything before the first change.
func (s *story) prepare() {
	s.step("begin", func() {})
	s.create()
	s.step("lock", func() {
		for i := range targets {
			s.lock(targets[i], txnUID, 0)
		}
	})
	s.step("images", func() { s.saveImages() })
	s.step("prepared", func() { s.checkpoint(func(status tree) { s.recordImages(status) }) })
	s.step("intent", func() {
		s.checkpoint(func(status tree) {
			status["phase"] = "Committing"
			move(status, 0, api.ItemCommitting)
		})
	})
}

// create tells of the Transaction being made, held and accepted.
func (s *story) create() {
	o := tree{"kind": "Transaction", "metadata": tree{"name": txn.Name, "namespace": ns, "uid": txnUID, "generation": int64(1)}}
	s.store(txn, o)
	s.evidence.Runs = []Run{{Namespace: ns, Name: txn.Name, UID: txnUID, Spec: s.spec, Items: targets}}
	s.send("PATCH", txn, faultinject.Call{FieldManager: "janusd"}, "", func(o tree) {
		o["metadata"].(tree)["finalizers"] = []any{api.Finalizer}
	})
	s.checkpoint(func(status tree) {
		var items []any
		for i, target := range targets {
			items = append(items, tree{"name": fmt.Sprint(i), "target": tree{"name": target.Name}})
		}
		status["items"], status["phase"] = items, "Preparing"
		for i := range targets {
			move(status, i, api.ItemPending)
		}
	})
}

// lock makes a Lease, or takes one over.
func (w *world) lock(target Ref, uid string, at time.Duration) {
	method := "PUT"
	if w.live[lockOf(target)] == nil {
		method = "POST"
	}
	w.send(method, lockOf(target), faultinject.Call{}, "Lease", func(o tree) {
		transitions := int64(0)
		if was, ok := o["spec"].(tree); ok && was["holderIdentity"] != ns+"/txn/"+uid {
			transitions = number(was["leaseTransitions"]) + 1
		}
		o["spec"] = tree{
			"holderIdentity": ns + "/txn/" + uid, "leaseDurationSeconds": int64(300), "leaseTransitions": transitions,
			"renewTime": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(at).Format(time.RFC3339Nano),
		}
	})
}

// saveImages stores the before-images.
func (w *world) saveImages() {
	data := tree{}
	for i, target := range targets {
		if w.live[target] != nil {
			w.images[i] = copyOf(w.live[target])
		}
		data[fmt.Sprint(i, "_key")] = string(encodedAs(tree{"item": i, "before": w.images[i]}))
	}
	w.send("POST", imagesOf, faultinject.Call{}, "ConfigMap", func(o tree) {
		o["data"] = data
		meta := o["metadata"].(tree)
		meta["finalizers"] = []any{imageFinalizer}
		meta["ownerReferences"] = []any{tree{"kind": "Transaction", "uid": txnUID}}
	})
}

// recordImages says in the status where they are.
func (w *world) recordImages(status tree) {
	status["phase"] = "Prepared"
	status["rollbackRef"] = tree{"name": imagesOf.Name, "objects": []any{"ConfigMap/" + imagesOf.Name}}
	data := w.live[imagesOf]["data"].(tree)
	for i, target := range targets {
		key := fmt.Sprint(i, "_key")
		before := tree{"key": key, "digest": digest(data[key].(string))}
		if o := w.images[i]; o != nil {
			before["uid"], before["resourceVersion"] = o["metadata"].(tree)["uid"], o["metadata"].(tree)["resourceVersion"]
		}
		item := status["items"].([]any)[i].(tree)
		item["before"], item["lockLease"] = before, ns+"/"+lockOf(target).Name
		move(status, i, api.ItemPrepared)
	}
}

func (s *story) forward(i int) { s.step(fmt.Sprint("do", i), func() { s.do(i) }) }

// do makes the change of an item.
func (w *world) do(i int) *faultinject.Call {
	switch i {
	case 0:
		return w.send("PATCH", mapA, asItem(0), "ConfigMap", func(o tree) {
			o["data"].(tree)["color"] = "blue"
			own(o, manager(0), true)
		})
	case 1:
		return w.send("POST", mapB, asItem(1), "ConfigMap", func(o tree) {
			o["data"] = tree{"x": "1"}
			sign(o, txn)
			own(o, manager(1), true)
		})
	case 2:
		return w.send("PUT", webD, asItem(2), "Deployment", func(o tree) {
			o["spec"].(tree)["template"].(tree)["spec"] = tree{"containers": []any{tree{"name": "web", "image": "web:2"}}}
			own(o, manager(2), true)
		})
	default:
		return w.remove(mapC, account)
	}
}

// undo restores the values of an item.
func (w *world) undo(i int) {
	switch i {
	case 0:
		w.send("PATCH", mapA, asItem(0), "", func(o tree) { o["data"].(tree)["color"] = "red" })
	case 1:
		w.remove(mapB, account)
	case 2:
		w.send("PATCH", webD, asItem(2), "", func(o tree) { o["spec"] = copyOf(w.images[2])["spec"] })
	default:
		w.send("POST", mapC, asItem(3), "ConfigMap", func(o tree) {
			o["data"] = copyOf(w.images[3])["data"]
			own(o, manager(3), true)
		})
	}
}

// owners gives the fields of an item back to their owners.
func (w *world) owners(i int) {
	if i == 1 || w.live[targets[i]] == nil {
		return
	}
	w.send("PATCH", targets[i], asItem(i), "", func(o tree) {
		own(o, manager(i), false)
		if i == 3 {
			o["metadata"].(tree)["managedFields"] = copyOf(w.images[3])["metadata"].(tree)["managedFields"]
		}
	})
}

func (w *world) handOver(i int) {
	w.send("PATCH", targets[i], faultinject.Call{User: account, FieldManager: defaultManager}, "", func(o tree) {
		own(o, manager(i), false)
	})
}

// finish tells of the end.
func (s *story) finish(phase api.Phase) {
	s.step("release", func() {
		for _, target := range targets {
			if s.live[lockOf(target)] != nil {
				s.remove(lockOf(target), "")
			}
		}
	})
	s.step("letgo", func() {
		s.send("PATCH", imagesOf, faultinject.Call{}, "", func(o tree) { delete(o["metadata"].(tree), "finalizers") })
		if phase == api.PhaseCommitted {
			s.remove(imagesOf, "")
		}
	})
	s.step("finalizer", func() {
		s.send("PATCH", txn, faultinject.Call{FieldManager: "janusd"}, "", func(o tree) { delete(o["metadata"].(tree), "finalizers") })
	})
	s.step("end", func() {
		s.checkpoint(func(status tree) {
			status["phase"], status["completionTime"] = string(phase), "2026-01-01T00:00:10Z"
			if phase == api.PhaseCommitted {
				delete(status, "rollbackRef")
			}
		})
	})
	s.step("after", func() {})
}

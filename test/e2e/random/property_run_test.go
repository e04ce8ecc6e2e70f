package random

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// run is what happened in a case.
type run struct {
	*randomCase
	*harness.Env
	start map[int]*unstructured.Unstructured
	txn   *api.Transaction

	mu     sync.Mutex
	failed error
	log    []event
	begun  map[int]bool
	// pre and post are the target of an item just before its change and after it.
	pre, post map[int]*unstructured.Unstructured
	ended     map[int]bool
	lost      map[int]bool // of the contents
}

// event is the change of an item, its compensation, or a write of another client.
type event struct {
	do, undo int
	write    *foreignWrite
}

func newRun(c *randomCase, e *harness.Env) *run {
	images := func() map[int]*unstructured.Unstructured { return map[int]*unstructured.Unstructured{} }
	return &run{randomCase: c, Env: e, start: images(), pre: images(), post: images(), begun: map[int]bool{}, ended: map[int]bool{}, lost: map[int]bool{}}
}

func (r *run) target(item int) *unstructured.Unstructured {
	return r.Object(r.objects[r.items[item].object].ref())
}

func (r *run) beforeDo(item int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun[item] {
		return
	}
	r.begun[item] = true
	r.lose(item)
	if item > 0 {
		r.post[item-1] = r.target(item - 1)
	}
	if item == len(r.items) {
		return
	}
	r.write(r.during[item])
	r.pre[item] = r.target(item)
	r.log = append(r.log, event{do: item, undo: -1})
}

func (r *run) beforeUndo(item int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended[item] || item == len(r.items) {
		return
	}
	r.ended[item] = true
	r.lose(item + 1)
	if r.post[item] == nil {
		r.post[item] = r.target(item)
	}
	r.write(r.after[item])
	r.log = append(r.log, event{do: -1, undo: item})
}

func (r *run) write(writes []foreignWrite) {
	for _, w := range writes {
		made, err := w.in(r.Env, r.randomCase)
		if err != nil {
			r.failed = err
		}
		if made {
			r.log = append(r.log, event{do: -1, undo: -1, write: &w})
		}
	}
}

// what names the end of a case.
func (r *run) what() string {
	out := string(r.txn.Status.Phase)
	for i := range r.objects {
		if len(r.contested(i)) > 0 {
			return out + " contested"
		}
	}
	return out
}

func (r *run) describeEnd() string {
	var out strings.Builder
	fmt.Fprintln(&out, harness.Describe(r.txn))
	for _, e := range r.log {
		if e.write != nil {
			fmt.Fprintln(&out, " ", e.write.describe(r.randomCase))
		} else {
			fmt.Fprintf(&out, "  do %d, undo %d\n", e.do, e.undo)
		}
	}
	for i, o := range r.objects {
		fmt.Fprintf(&out, "%s was %v\n", o.ref(), r.start[i])
	}
	return out.String()
}

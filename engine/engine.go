package engine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/memory"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/fanout"
)

// Engine carries Transactions out.
type Engine struct {
	Ports
	clock    clock.WithTicker
	policy   plan.Policy
	memories *memory.All
	// beside does pieces of work side by side, as fanout.Do does.
	beside func(limit, n int, work func(i int))
}

// New makes an Engine.
func New(ports Ports, c clock.WithTicker, policy plan.Policy) *Engine {
	return &Engine{Ports: ports, clock: c, policy: policy.WithDefaults(), memories: memory.New(c), beside: fanout.Do}
}

// Distrust drops what this process knows of a Transaction of which a step was broken
// off: it is met again as if another process had run it.
func (e *Engine) Distrust(t *api.Transaction) { e.memories.Drop(t) }

// Forget drops what this process knows of some Transactions that another process runs
// from now on. Should they come back, they are met as after a restart. None of them
// may be running.
func (e *Engine) Forget(these func(types.NamespacedName) bool) {
	for _, t := range e.memories.Forget(these) {
		e.Locks.Forget(t)
		e.Planner.Forget(t)
	}
}

// EndedLately reports whether a Transaction that was completed then may have something
// left of it. It costs a few requests to look.
func (e *Engine) EndedLately(completion *metav1.Time) bool { return e.memories.EndedLately(completion) }

// SettleTime is how long a request may take to land after its sender has died.
func (e *Engine) SettleTime() time.Duration { return e.policy.SettleTime }

// Knows reports whether this process has taken something for a Transaction, or looks for what may be
// left of it.
func (e *Engine) Knows(uid types.UID) bool { return e.memories.Knows(uid) }

// IsCleared reports whether it was found out that nothing is left of a Transaction.
func (e *Engine) IsCleared(uid types.UID) bool { return e.memories.IsCleared(uid) }

// Clear notes that nothing is left of a Transaction that has ended.
func (e *Engine) Clear(uid types.UID) { e.memories.Clear(uid) }

// ExpiresIn is how long a Transaction that was completed then is to stay, before it is
// looked at: the clock may have been ahead.
func (e *Engine) ExpiresIn(completion time.Time, ttl time.Duration) time.Duration {
	return min(ttl, completion.Add(ttl).Sub(e.clock.Now()))
}

// Retire has these Transactions, and none that were named before, deleted when they are
// run next, though their time after their end is not over. One that is not dispensable
// stays, and so does one that can be undone.
func (e *Engine) Retire(those map[types.UID]bool) { e.memories.Retire(those) }

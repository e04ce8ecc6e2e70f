package enforced

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
)

// Transactions are read as the API server has them.
type Transactions interface {
	// Read returns nil if there is none of that name.
	Read(ctx context.Context, name types.NamespacedName) (*api.Transaction, error)
	// Unwritten fails if another client has written t.
	Unwritten(ctx context.Context, t *api.Transaction) error
	// NotOvertaken fails if another process has, unless t is gone.
	NotOvertaken(ctx context.Context, t *api.Transaction) error
}

// Locks are Leases as ever, and entries in the tables for as long as a Transaction has them.
type Locks struct {
	engine.Locks
	tables       *Tables
	transactions Transactions
	clock        clock.PassiveClock
	lateness     time.Duration

	mu sync.Mutex
	// recovering is, by holder, the recovery for which this process has entered its targets.
	recovering map[string]int32
}

// Around puts the tables around the Leases. lateness is as in engine.Policy.
func Around(leases engine.Locks, tables *Tables, transactions Transactions, c clock.PassiveClock, lateness time.Duration) *Locks {
	if lateness <= 0 {
		lateness = plan.DefaultLateness
	}
	return &Locks{Locks: leases, tables: tables, transactions: transactions, clock: c, lateness: lateness, recovering: map[string]int32{}}
}

// Acquire takes the Leases and then enters the targets, in one write for each namespace. It
// may be repeated after any outcome. What is cluster-scoped has no table.
func (l *Locks) Acquire(ctx context.Context, t *api.Transaction, lost func()) ([]string, error) {
	heard := l.clock.Now()
	leases, err := l.Locks.Acquire(ctx, t, lost)
	if err != nil {
		return nil, err
	}
	if err := l.enter(ctx, t, leases, heard, lost); err != nil {
		return nil, err
	}
	return leases, nil
}

// Keep keeps the Leases. A recovery takes them again by that, and its targets are entered
// again the first time.
func (l *Locks) Keep(ctx context.Context, t *api.Transaction, lost func()) error {
	heard := l.clock.Now()
	if err := l.Locks.Keep(ctx, t, lost); err != nil || !l.isNew(t) {
		return err
	}
	var leases []string
	for _, item := range t.Status.Items {
		leases = append(leases, item.LockLease)
	}
	if err := l.enter(ctx, t, leases, heard, lost); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recovering[api.HolderOf(t)] = t.Status.Recoveries
	return nil
}

// isNew reports whether t is in a recovery for which this process has entered nothing.
func (l *Locks) isNew(t *api.Transaction) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recovering[api.HolderOf(t)] < t.Status.Recoveries
}

// Forget implements engine.Locks.
func (l *Locks) Forget(t *api.Transaction) {
	l.Locks.Forget(t)
	l.forget(t)
}

func (l *Locks) forget(t *api.Transaction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.recovering, api.HolderOf(t))
}

// enter enters the targets whose Leases are held since heard or later.
func (l *Locks) enter(ctx context.Context, t *api.Transaction, leases []string, heard time.Time, lost func()) error {
	// A process that hung may have been replaced, and the Transaction may have ended: what
	// it enters then is of use to nobody, and would stay until the next sweep.
	confirm := func(ctx context.Context) error {
		asked := l.clock.Now()
		if asked.Sub(heard) < l.lateness {
			return nil
		}
		if err := l.transactions.Unwritten(ctx, t); err != nil {
			return err
		}
		heard = asked
		return nil
	}
	keys := keysOf(t, leases)
	// In one order: of two that wait for room, none has entered what the other waits for.
	for _, namespace := range slices.Sorted(maps.Keys(keys)) {
		if err := l.tables.add(ctx, namespace, keys[namespace], api.HolderOf(t), confirm, lost); err != nil {
			return err
		}
	}
	return nil
}

// Release takes the entries of t out and then releases the Leases. The other way round,
// a Transaction that takes one of them at once would find the entry of this one.
func (l *Locks) Release(ctx context.Context, t *api.Transaction, search engine.Search) error {
	confirm := func(ctx context.Context) error { return l.transactions.NotOvertaken(ctx, t) }
	namespaces := map[string]bool{}
	for _, item := range t.Status.Items {
		if item.Target.Namespace != "" {
			namespaces[item.Target.Namespace] = true
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if err := l.tables.remove(ctx, namespace, map[string]bool{api.HolderOf(t): true}, confirm); err != nil {
			return err
		}
	}
	l.forget(t)
	return l.Locks.Release(ctx, t, search)
}

// keysOf returns the keys of the targets that are locked, by namespace. A guard keeps other
// Transactions away, and nobody else.
func keysOf(t *api.Transaction, leases []string) map[string][]string {
	keys := map[string][]string{}
	for i, item := range t.Status.Items {
		if leases[i] == "" || item.Target.Namespace == "" || item.Type == api.Await {
			continue
		}
		group := schema.FromAPIVersionAndKind(item.Target.APIVersion, item.Target.Kind).Group
		keys[item.Target.Namespace] = append(keys[item.Target.Namespace], keyOf(group, item.Resource, item.Target.Name))
	}
	return keys
}

// keyOf is what the policy looks up. Versions of one kind are one target.
func keyOf(group, resource, name string) string {
	if group != "" {
		group += "/"
	}
	return group + resource + "/" + name
}

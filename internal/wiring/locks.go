package wiring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/internal/target"
	"janus.io/janus/lockmgr"
	"janus.io/janus/snapshot"
)

// Locks are the Leases of a Transaction's targets.
type Locks struct {
	manager *lockmgr.Manager
	late    staleness
	others  *endings

	mu   sync.Mutex
	kept map[string]time.Time // when the locks of a holder were last kept
}

func newLocks(manager *lockmgr.Manager, late staleness) *Locks {
	return &Locks{manager: manager, late: late, others: newEndings(late.journal, late.clock), kept: map[string]time.Time{}}
}

// justKept reports whether the locks of a holder were kept a moment ago: none of them has
// come near the time at which it is to be renewed since.
func (l *Locks) justKept(h lockmgr.Holder) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.kept[h.Identity]
	since := l.late.clock.Since(at)
	return ok && since >= 0 && since < h.TTL/12
}

func (l *Locks) setKept(h lockmgr.Holder, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[h.Identity] = at
}

// unkept has the locks of a holder looked at before they are taken to be held.
func (l *Locks) unkept(h lockmgr.Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept, h.Identity)
}

// taker is the holder as which locks are taken.
func (l *Locks) taker(t *api.Transaction, lost func()) lockmgr.Holder {
	h := holderOf(t)
	h.Confirm, h.Lost, h.Ended, h.Waits = l.late.begin(t), lost, l.others.hasEnded, true
	return h
}

// Acquire takes the locks of all targets.
func (l *Locks) Acquire(ctx context.Context, t *api.Transaction, lost func()) ([]string, error) {
	l.unkept(holderOf(t))
	keys, items, err := keysOf(t)
	if err != nil {
		return nil, err
	}
	locks, err := l.manager.Acquire(ctx, l.taker(t, lost), keys)
	if err != nil {
		return nil, explainLock(err)
	}
	names := map[objectid.ID]string{}
	for _, lock := range locks {
		names[lock.Key.ID] = lock.String()
	}
	out := make([]string, len(t.Status.Items))
	for n, key := range keys {
		out[items[n]] = names[key.ID]
	}
	return out, nil
}

// Keep renews what needs renewing. While the locks are being taken it renews
// those that are held.
func (l *Locks) Keep(ctx context.Context, t *api.Transaction, lost func()) error {
	if l.justKept(holderOf(t)) {
		return nil
	}
	began := l.late.clock.Now()
	keys, items, err := keysOf(t)
	if err != nil {
		return err
	}
	var locks []lockmgr.Lock
	seen := map[lockmgr.Key]bool{}
	for n, key := range keys {
		lease := t.Status.Items[items[n]].LockLease
		if lease == "" || seen[key] {
			continue
		}
		seen[key] = true
		lock, err := lockmgr.ParseLock(key, lease)
		if err != nil {
			return err
		}
		locks = append(locks, lock)
	}
	if len(locks) == 0 {
		_, err := l.manager.Acquire(ctx, l.taker(t, lost), keys)
		return explainLock(err)
	}
	if err := l.manager.Keep(ctx, l.taker(t, lost), locks); err != nil {
		return explainLock(err)
	}
	l.setKept(holderOf(t), began)
	return nil
}

// Release releases every lock, recorded or not.
func (l *Locks) Release(ctx context.Context, t *api.Transaction, search engine.Search) error {
	keys, _, err := keysWith(t, func(item api.Item) bool {
		return isLocked(item) || search != engine.SearchNot && item.Resource != "" && (item.Type != api.Await || item.Guard)
	})
	if err != nil {
		return err
	}
	holder := holderOf(t)
	l.unkept(holder)
	holder.Confirm = l.late.unlessOvertaken(t)
	if err := l.manager.Release(ctx, holder, keys); err != nil && !onlyUnseen(err, held(t)) {
		return explainLock(err)
	}
	l.manager.Forget(holder.Identity)
	return nil
}

// onlyUnseen reports whether all that could not be released are locks that are not on
// record, of Leases at which janusd may not look. It may not take them either. One that it
// took while it still might, and died before that was on record, expires.
func onlyUnseen(err error, held map[objectid.ID]bool) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !onlyUnseen(err, held) })
	}
	var unseen *lockmgr.UnseenError
	return errors.As(err, &unseen) && !held[unseen.Key.ID]
}

// held are the locks that are on record.
func held(t *api.Transaction) map[objectid.ID]bool {
	out := map[objectid.ID]bool{}
	for _, item := range t.Status.Items {
		if ref, err := refOf(item); err == nil && item.LockLease != "" {
			out[ref.ID()] = true
		}
	}
	return out
}

// Distrust forgets which locks are held.
func (l *Locks) Distrust(t *api.Transaction) {
	l.unkept(holderOf(t))
	l.manager.Distrust(holderOf(t).Identity)
}

// Forget implements engine.Locks.
func (l *Locks) Forget(t *api.Transaction) {
	l.unkept(holderOf(t))
	l.manager.Forget(holderOf(t).Identity)
}

// keysOf returns the keys of what is to be locked, and which item each is of. A target that
// was skipped before anything was locked, or is only waited for and no guard, is not. A guard
// shares its lock with those of other Transactions.
func keysOf(t *api.Transaction) (keys []lockmgr.Key, items []int, err error) {
	return keysWith(t, isLocked)
}

func isLocked(item api.Item) bool {
	guards := item.Guard && item.State != api.ItemSkipped
	return item.LockLease != "" || item.Changes() || guards
}

func keysWith(t *api.Transaction, locked func(api.Item) bool) (keys []lockmgr.Key, items []int, err error) {
	for i, item := range t.Status.Items {
		if !locked(item) {
			continue
		}
		ref, err := refOf(item)
		if err != nil {
			return nil, nil, err
		}
		key := keyOf(ref)
		key.Shared = item.Type == api.Await
		keys = append(keys, key)
		items = append(items, i)
	}
	return keys, items, nil
}

func keyOf(ref target.Ref) lockmgr.Key {
	return lockmgr.Key{ID: ref.ID(), Kind: ref.GVK.Kind}
}

// holderOf identifies a Transaction as a holder. The uid makes a new Transaction
// of the same name another holder.
func holderOf(t *api.Transaction) lockmgr.Holder {
	return lockmgr.Holder{
		Identity:       api.HolderOf(t),
		Labels:         snapshot.Labels(t.Name),
		SharedLabels:   snapshot.SharedLabels(),
		Annotations:    map[string]string{api.TransactionKey: t.Namespace + "/" + t.Name},
		OwnerNamespace: t.Namespace,
		Owner:          ptr.To(api.OwnerReference(t.Name, t.UID)),
		TTL:            plan.LockTimeout(t),
	}
}

// explainLock puts the errors of lockmgr into the classes that the engine knows.
func explainLock(err error) error {
	var held *lockmgr.HeldError
	var lost *lockmgr.LostError
	var terminating *lockmgr.NamespaceTerminatingError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &held):
		found := errclass.New(errclass.Retryable, errclass.LockHeld, "lock", held.Key.String(), "%s", inTheWay(held))
		found.Awaited, found.RetryAfter = lockOf(held), held.Until
		return found.WithHint(goFirst(held))
	case errors.As(err, &lost) && lost.Forged:
		return errclass.New(errclass.Conflict, errclass.LockLost, "keep the lock of", lost.Key.String(),
			"Lease %s names this Transaction, but another client has written it: it lacks the labels of a lock", lost.Lock).
			WithHint("install deploy/policies, which keep others from writing held locks")
	case errors.As(err, &lost):
		return errclass.New(errclass.Conflict, errclass.LockLost, "keep the lock of", lost.Key.String(),
			"it has passed to %s", nameOfHolder(lost.Holder)).WithHint("raise spec.lockTimeout if janusd is often away for longer")
	case errors.As(err, &terminating):
		return errclass.New(errclass.Terminal, errclass.Terminating, "lock", terminating.Key.String(),
			"namespace %s is being deleted", terminating.Namespace).WithHint("wait until it is gone and re-created, then create the Transaction again")
	default:
		return errclass.Wrap(err, "lock", "", false)
	}
}

// inTheWay says who is.
func inTheWay(held *lockmgr.HeldError) string {
	switch {
	case held.Waits:
		return fmt.Sprintf("it is shared, and %s is waiting to have it alone; waiting until that has ended", nameOfHolder(held.Holder))
	case held.Others > 0:
		return fmt.Sprintf("it is held by %s and %d more; waiting until they have released it or it expires", nameOfHolder(held.Holder), held.Others)
	case held.Forged:
		return fmt.Sprintf("Lease %s names this Transaction, but another client has written it: it lacks the labels of a lock; waiting until it is deleted or expires", held.Lease)
	default:
		since, lasts := "", ""
		if !held.Since.IsZero() {
			since = " (since " + held.Since.UTC().Format(time.RFC3339) + ")"
		}
		if held.Lasts > 0 {
			lasts = fmt.Sprintf(", %s after its last renewal", held.Lasts)
		}
		return fmt.Sprintf("it is held by %s%s; waiting until it is released or expires%s", nameOfHolder(held.Holder), since, lasts)
	}
}

// goFirst is what to do for who cannot wait. It is not said of more than one holder.
func goFirst(held *lockmgr.HeldError) string {
	if held.Waits || held.Others > 0 || held.Forged || held.Holder == "" {
		return ""
	}
	if _, _, ok := api.ParseHolder(held.Holder); ok {
		return "cancel that Transaction if this one can't wait"
	}
	return "ask its holder if this can't wait"
}

// lockOf is the Lease that is in the way, if a Transaction holds it. Of others nothing is heard.
func lockOf(held *lockmgr.HeldError) []errclass.Awaited {
	holder, _, ok := api.ParseHolder(held.Holder)
	if !ok || held.Forged {
		return nil
	}
	namespace, name, _ := strings.Cut(held.Lease, "/")
	return []errclass.Awaited{{ID: objectid.ID{Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace, Name: name}, Holder: holder, Shared: held.Shared}}
}

// nameOfHolder names a holder for people, who know a Transaction without its uid. A Lease that is being deleted is in the way without one.
func nameOfHolder(identity string) string {
	if identity == "" {
		return "nobody that it names"
	}
	return api.DescribeHolder(identity)
}

package lockmgr

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/fanout"
)

// # Why two places exclude
//
// A target in namespace N has a home Lease in N and, as long as N does not
// exist, a stand-in in the Manager's namespace. Two rules make one lock of the
// two Leases. A Lease that has not been through its rule is not settled, and
// Acquire does not return it as held.
//
//	rule S: who has taken the stand-in checks after that, by creating the
//	        home Lease, that N is absent. If it is not, the stand-in is
//	        released and the home Lease is taken instead.
//	rule H: who has taken the home Lease reads after that, by a list, the
//	        stand-in. If another client's is alive, the home Lease is
//	        released. If another client's has expired, it is deleted, conditioned
//	        on what was read, before the home Lease counts: its holder could
//	        otherwise come back and renew it.
//
// Let P have settled the stand-in, taken at s and checked at s' > s, and Q the
// home Lease, taken at h and checked at h' > h, each the Lease's holder since.
// If s < h' then Q's list, which the API server answers from its latest state,
// shows P's stand-in, and Q did not settle or has deleted it, and P has found
// it gone or will when it next writes it. If h' < s then h < s': N existed at
// h and was absent at s', so N was deleted in between, and the API server lets
// go of a namespace only when all its content is gone, Q's Lease with it. Q
// finds that out when it next renews, and then finds P's stand-in.
//
// Two that take the home Lease, or two that take the stand-in, exclude each
// other by the Lease itself. Both may be refused if one is about to apply rule
// S while the other applies rule H; by then N exists, so neither will try the
// stand-in again.
//
// A holder that has a settled stand-in keeps it when N comes into being, which
// is what happens to a Transaction that creates N: rule H keeps the others
// away. If it has lost its memory since, it may take the home Lease first and
// find its own stand-in by rule H. Then it has both at one moment, so nobody
// has settled either, and it stays with the stand-in, which is the lock that
// it has recorded.

// settle applies the rules to the locks that were taken, one namespace at a
// time. It says whether some were taken in vain, because their namespace came
// into being, and have to be taken again.
func (a *acquisition) settle(ctx context.Context) (again bool) {
	namespaces := map[string]*unsettled{}
	var todo []*unsettled
	for i := range a.slots[:a.firstRefused()] {
		s := &a.slots[i]
		if !s.held || s.settled {
			continue
		}
		if len(a.places(s.key)) == 1 {
			a.settled(s)
			continue
		}
		u := namespaces[s.key.Namespace]
		if u == nil {
			u = &unsettled{namespace: s.key.Namespace}
			namespaces[s.key.Namespace] = u
			todo = append(todo, u)
		}
		if isStandIn(s.key, s.place) {
			u.standIns = append(u.standIns, i)
		} else {
			u.homes = append(u.homes, i)
		}
	}
	fanout.Do(a.parallel, len(todo), func(i int) {
		u := todo[i]
		a.settleHomes(ctx, u)
		a.settleStandIns(ctx, u)
	})
	for _, u := range todo {
		again = again || u.inVain
	}
	return again
}

// unsettled are the slots of one namespace that need settling.
type unsettled struct {
	namespace       string
	homes, standIns []int
	// inVain is set if the stand-ins were released.
	inVain bool
}

// settleHomes applies rule H.
func (a *acquisition) settleHomes(ctx context.Context, u *unsettled) {
	if len(u.homes) == 0 {
		return
	}
	standIns, err := a.listStandIns(ctx, u.namespace)
	for _, i := range u.homes {
		s := &a.slots[i]
		if err != nil {
			a.fail(i, err)
			continue
		}
		standIn := standIns[s.place.Name]
		if standIn == nil {
			a.settled(s)
			continue
		}
		a.settleAgainst(ctx, i, standIn)
	}
}

// settleAgainst applies rule H to slot i, of which there is a stand-in.
func (a *acquisition) settleAgainst(ctx context.Context, i int, standIn *coordinationv1.Lease) {
	s := &a.slots[i]
	home := lockAt(s.key, s.place)
	if a.isOwn(a.holder, standIn) && standIn.DeletionTimestamp == nil {
		err := a.renew(ctx, a.holder, lockAt(s.key, placeOf(standIn)), standIn)
		if err != nil {
			a.fail(i, err)
			return
		}
		if err := a.giveBackAt(ctx, home, a.leaseAt(home)); err != nil {
			a.fail(i, err)
			return
		}
		s.place = placeOf(standIn)
		a.settled(s)
		return
	}
	err := a.clearStandIn(ctx, s.key, standIn)
	if err == nil {
		a.settled(s)
		return
	}
	if isHeld(err) {
		a.observe(OperationAcquire, ResultHeld)
		if failure := a.giveBackAt(ctx, home, a.leaseAt(home)); failure != nil {
			err = errors.Join(err, failure)
		}
	}
	a.fail(i, err)
}

// clearStandIn deletes another client's stand-in that is free, has expired or is of a holder
// that has ended, and returns *HeldError if it is neither.
func (a *acquisition) clearStandIn(ctx context.Context, key Key, standIn *coordinationv1.Lease) error {
	alone := key
	alone.Shared = false // It is to go, so nobody joins it, and nobody needs to be the next.
	if _, err := a.claim(ctx, a.holder, alone, standIn); err != nil {
		if held := (*HeldError)(nil); errors.As(err, &held) {
			held.Key, held.wanted = key, nil
		}
		return err
	}
	err := a.delete(ctx, standIn)
	if apierrors.IsConflict(err) {
		// Another client has written it since. It may be taken again.
		return &HeldError{
			Key: key, Lease: placeOf(standIn).String(), Holder: firstHolder(standIn), Until: a.limits.recheck,
		}
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	a.memory.stopWatching(a.holder.Identity, placeOf(standIn))
	return nil
}

// settleStandIns applies rule S. All stand-ins were taken before, so one create
// answers for all.
func (a *acquisition) settleStandIns(ctx context.Context, u *unsettled) {
	if len(u.standIns) == 0 {
		return
	}
	first := a.slots[u.standIns[0]].key
	err := a.create(ctx, a.holder, first, a.places(first)[0])
	switch {
	case isNamespaceMissing(err):
		for _, i := range u.standIns {
			a.settled(&a.slots[i])
		}
	case err == nil, apierrors.IsAlreadyExists(err), isTerminating(err):
		u.inVain = true
		a.setAbsent(u.namespace, false)
		for _, i := range u.standIns {
			a.abandon(ctx, i)
		}
	default:
		for _, i := range u.standIns {
			a.fail(i, err)
		}
	}
}

// abandon releases the stand-in of slot i, so that the slot is taken again.
func (a *acquisition) abandon(ctx context.Context, i int) {
	s := &a.slots[i]
	s.held = false
	standIn := lockAt(s.key, s.place)
	if err := a.giveBackAt(ctx, standIn, a.leaseAt(standIn)); err != nil {
		a.fail(i, err)
	}
}

// settled notes that the slot's lock is held.
func (a *acquisition) settled(s *slot) {
	s.settled = true
	a.memory.settle(a.holder.Identity, s.place)
}

// leaseAt is the Lease of the lock as it is remembered, or nil.
func (a *acquisition) leaseAt(lock Lock) *coordinationv1.Lease {
	for _, t := range a.memory.at(a.holder.Identity, []types.NamespacedName{lock.place()}) {
		return t.lease
	}
	return nil
}

// listStandIns returns, by name, the Leases that stand in for ones in the
// namespace.
func (m *Manager) listStandIns(ctx context.Context, namespace string) (map[string]*coordinationv1.Lease, error) {
	selector := labels.Set{LabelStandsInFor: standInLabel(namespace)}.String()
	list, err := m.client.Leases(m.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list Leases of namespace %s that stand in for ones of %s: %w", m.namespace, namespace, err)
	}
	byName := make(map[string]*coordinationv1.Lease, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return byName, nil
}

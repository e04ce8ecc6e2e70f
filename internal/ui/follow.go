package ui

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
)

// behind is how many changes a follower may be behind. Anyone who is more is left out,
// begins again, and is told everything then: nobody is told of some changes and not of
// others.
const behind = 1000

// follower is one who is told of changes.
type follower struct {
	of     *Shared
	events chan watch.Event
}

// ResultChan implements watch.Interface.
func (f *follower) ResultChan() <-chan watch.Event { return f.events }

// Stop implements watch.Interface.
func (f *follower) Stop() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.of.drop(f)
}

// follow needs the mutex, as list does: nothing is to happen in between.
func (s *Shared) follow() *follower {
	f := &follower{of: s, events: make(chan watch.Event, behind)}
	s.followers[f] = struct{}{}
	return f
}

// drop needs the mutex.
func (s *Shared) drop(f *follower) {
	if _, follows := s.followers[f]; follows {
		delete(s.followers, f)
		close(f.events)
	}
}

// tell needs the mutex.
func (s *Shared) tell(event watch.Event) {
	for f := range s.followers {
		select {
		case f.events <- event:
		default:
			s.drop(f)
		}
	}
}

// end ends what everybody follows: because of an error, or for good.
func (s *Shared) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.ended = true
	} else {
		status := apierrors.NewServiceUnavailable("what is shown may be old: " + err.Error()).Status()
		s.tell(watch.Event{Type: watch.Error, Object: &status})
	}
	for f := range s.followers {
		s.drop(f)
	}
}

// hear keeps what the informers say, and tells it.
func (s *Shared) hear(kind watch.EventType, obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	t, ok := obj.(*api.Transaction)
	if !ok {
		return
	}
	key := t.Namespace + "/" + t.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == watch.Deleted {
		delete(s.known, key)
	} else {
		s.known[key] = t
	}
	s.tell(watch.Event{Type: kind, Object: t})
}

// trim cuts a Transaction down to what a list shows of it and what the locks of others are
// made of, so that many that have ended cost little memory.
func trim(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	whole, err := typed(u)
	if err != nil {
		return nil, fmt.Errorf("keep it for the page: %w", err)
	}
	small := &api.Transaction{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: whole.Namespace, Name: whole.Name, UID: whole.UID,
			ResourceVersion: whole.ResourceVersion, CreationTimestamp: whole.CreationTimestamp,
			OwnerReferences: whole.OwnerReferences, ManagedFields: madeBy(whole),
		},
		Spec: api.TransactionSpec{ServiceAccountName: whole.Spec.ServiceAccountName},
		Status: api.TransactionStatus{
			Phase: whole.Status.Phase, Progress: whole.Status.Progress,
			StartTime: whole.Status.StartTime, CompletionTime: whole.Status.CompletionTime,
		},
	}
	kinds := []string{api.ConditionReady}
	if !whole.Status.Phase.Terminal() {
		kinds = append(kinds, api.ConditionReconciling, api.ConditionValidated)
		trimRunning(small, whole)
	}
	for _, kind := range kinds {
		if c := meta.FindStatusCondition(whole.Status.Conditions, kind); c != nil {
			small.Status.Conditions = append(small.Status.Conditions, *c)
		}
	}
	return small, nil
}

// madeBy is as much of the managed fields as tells who has made a Transaction.
func madeBy(t *api.Transaction) []metav1.ManagedFieldsEntry {
	creator := creatorOf(&api.Transaction{ObjectMeta: metav1.ObjectMeta{ManagedFields: t.ManagedFields}})
	if creator == "" {
		return nil
	}
	return []metav1.ManagedFieldsEntry{{Manager: creator, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:changes":{}}}`)}}
}

// trimRunning keeps what tells how far a Transaction is, what it waits for, and its locks.
func trimRunning(small, whole *api.Transaction) {
	small.Status.SuspendTime = whole.Status.SuspendTime
	if a := whole.Status.Approval; a != nil {
		small.Status.Approval = &api.ApprovalStatus{RequestTime: a.RequestTime, ApprovalTime: a.ApprovalTime}
	}
	for i := range whole.Spec.Changes {
		c := &whole.Spec.Changes[i]
		limits := api.Change{Name: c.Name, Type: c.Type}
		if c.ReadyWhen != nil {
			limits.ReadyWhen = &api.ReadyWhen{Timeout: c.ReadyWhen.Timeout}
		}
		if c.GoneWhen != nil {
			limits.GoneWhen = &api.GoneWhen{Timeout: c.GoneWhen.Timeout}
		}
		if c.Rollback != nil {
			limits.Rollback = &api.ChangeRollback{ReadyWhen: api.ReadyWhen{Timeout: c.Rollback.ReadyWhen.Timeout}}
		}
		small.Spec.Changes = append(small.Spec.Changes, limits)
	}
	for i := range whole.Status.Items {
		item := &whole.Status.Items[i]
		kept := api.Item{
			Name: item.Name, Type: item.Type, Target: item.Target, Resource: item.Resource, LockLease: item.LockLease, State: item.State,
			Failed: item.Failed, WaitStartTime: item.WaitStartTime, ReadyTime: item.ReadyTime,
		}
		if item.ReadyWhen != nil {
			kept.ReadyWhen = &api.ReadyWhen{Timeout: item.ReadyWhen.Timeout}
		}
		if item.RollbackWait != nil {
			kept.RollbackWait = &api.RollbackWait{StartTime: item.RollbackWait.StartTime, ReadyTime: item.RollbackWait.ReadyTime}
		}
		small.Status.Items = append(small.Status.Items, kept)
	}
}

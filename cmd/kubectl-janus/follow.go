package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// view shows a Transaction while it runs.
type view interface {
	// update is called with each version of the Transaction that is seen.
	update(t *api.Transaction)
	// done is called once, whatever the end is.
	done()
}

// opening is a view that shows what is known of a Transaction before its first version is seen.
type opening interface {
	open(t *api.Transaction)
}

// errDeleted says that a Transaction is gone.
var errDeleted = errors.New("it was deleted")

// unendedError says that a Transaction was waited for in vain.
type unendedError struct {
	// last is the Transaction as it was seen last.
	last *api.Transaction
	// limit is how long it was waited for; zero if the wait was interrupted.
	limit time.Duration
}

// byItself is what happens to a Transaction that nobody waits for any more.
func byItself(t *api.Transaction) string {
	if unheard(t) {
		return "to see whether one runs: kubectl janus check"
	}
	return "it continues by itself"
}

func (e *unendedError) Error() string {
	name := e.last.Namespace + "/" + e.last.Name
	if e.limit == 0 {
		return fmt.Sprintf("interrupted: transaction %[1]s continues by itself: %[2]s. To follow it, run kubectl janus wait %[3]s -n %[4]s, and to end it and roll it back, kubectl janus cancel %[3]s -n %[4]s",
			name, sentence(e.last), e.last.Name, e.last.Namespace)
	}
	return fmt.Sprintf("transaction %s has not ended after %s: %s; %s", name, e.limit, sentence(e.last), byItself(e.last))
}

// follow watches a Transaction until it has ended; limit is how long at most, zero for as
// long as it takes. If that is over, or it is interrupted, the error is *unendedError.
func (s *session) follow(ctx context.Context, t *api.Transaction, limit time.Duration, v view) (*api.Transaction, error) {
	defer v.done()
	if first, ok := v.(opening); ok {
		first.open(t)
	}
	client, err := s.transactions(t.Namespace)
	if err != nil {
		return nil, err
	}
	asked := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	// What the reflector would print of its troubles is for developers.
	ctx = klog.NewContext(ctx, klog.Logger{})
	last := t
	event, err := watchtools.UntilWithSync(ctx, only(client, t.Name, &troubles{session: s, t: t, refuse: refuse}), &unstructured.Unstructured{},
		func(store cache.Store) (bool, error) {
			if _, exists, err := store.GetByKey(t.Namespace + "/" + t.Name); err != nil || exists {
				return false, err
			}
			return false, errDeleted
		},
		func(event watch.Event) (bool, error) {
			now, err := seen(event, t.UID)
			if err != nil {
				return false, err
			}
			last = now
			v.update(now)
			// The first version that is seen may be older than the one that was asked for.
			return now.Generation >= t.Generation && afterAsking(now, t) && ended(now), nil
		})
	switch {
	case err == nil && event != nil:
		return last, nil
	case asked.Err() != nil:
		return nil, &exitError{exitOther, &unendedError{last: last}}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &exitError{exitTimeout, &unendedError{last, limit}}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, fmt.Errorf("wait for Transaction %s/%s: %w", t.Namespace, t.Name, err)
	}
}

// only lists and watches one object.
func only(client dynamic.ResourceInterface, name string, x *troubles) cache.ListerWatcher {
	one := fields.OneTermEqualSelector("metadata.name", name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = one
			list, err := client.List(ctx, o)
			x.heard("list", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = one
			w, err := client.Watch(ctx, o)
			x.heard("watch", err)
			return w, err
		},
	}
}

// seen returns the Transaction of an event.
func seen(event watch.Event, uid types.UID) (*api.Transaction, error) {
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the watch sent %T", event.Object)
	}
	if event.Type == watch.Deleted || u.GetUID() != uid {
		return nil, errDeleted
	}
	return typed(u)
}

// ended reports whether a Transaction has come to an end that is not about to be revised:
// what was asked for last has been seen, and is not that what was left be rolled back.
func ended(t *api.Transaction) bool {
	if t.Status.CompletionTime == nil || t.Status.ObservedGeneration < t.Generation || triedAgain(t) {
		return false
	}
	return t.Spec.Cancel != api.CancelRollback || !slices.ContainsFunc(t.Status.Items, func(i api.Item) bool {
		return i.State == api.ItemUnresolved && i.Reason == errclass.Cancelled
	})
}

// triedAgain reports whether janusd is about to retry the failed compensations, because a
// user has asked for that.
func triedAgain(t *api.Transaction) bool {
	what := t.Annotations[api.RecoverAnnotation]
	return what != "" && errclass.Cut(errclass.OneLine(what), 128) != t.Status.HandledRecovery && t.Status.RollbackRef != nil && unresolved(t) &&
		!t.Spec.Suspend && t.Spec.Cancel != api.CancelStop
}

// afterAsking reports whether a version of a Transaction that was seen is of after a recovery was
// asked for, if one was.
func afterAsking(now, t *api.Transaction) bool {
	return now.Annotations[api.RecoverAnnotation] == t.Annotations[api.RecoverAnnotation] || now.Status.Version > t.Status.Version
}

package engine

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// locks are all or nothing.
type locks struct{ *world }

func (l locks) Acquire(_ context.Context, t *api.Transaction, lost func()) (leases []string, err error) {
	defer func() { tellLost(err, lost) }()
	return leases, l.call("lock", func() (string, error) {
		leases = nil
		for _, item := range t.Status.Items {
			name := item.Target.Name
			if holder := l.locks[name]; holder != "" && holder != ours {
				return "", errclass.New(errclass.Retryable, errclass.LockHeld, "lock", item.Target.String(),
					"Lease shop/lock-%s is held by %s; waiting until it is released or expires", name, holder)
			}
			lease := ""
			if isLocked(item) {
				lease = "shop/lock-" + name
			}
			leases = append(leases, lease)
		}
		for _, item := range t.Status.Items {
			if isLocked(item) {
				l.locks[item.Target.Name] = ours
			}
		}
		return "lock", nil
	})
}

// isLocked reports whether the target of an item is locked: what is only waited for is not.
func isLocked(item api.Item) bool { return item.Type != api.Await || item.Guard }

// tellLost does what a port does when a creation got no answer.
func tellLost(err error, lost func()) {
	if err != nil && errclass.ClassOf(err) == errclass.Unknown {
		lost()
	}
}

func (l locks) Distrust(*api.Transaction) { l.distrusted++ }
func (l locks) Forget(*api.Transaction)   { l.say("forget the locks") }

func (l locks) Keep(_ context.Context, t *api.Transaction, _ func()) error {
	return l.call("keep the locks", func() (string, error) {
		for _, item := range t.Status.Items {
			switch holder := l.locks[item.Target.Name]; {
			case holder == ours || !isLocked(item):
			case holder == "":
				l.locks[item.Target.Name] = ours
			default:
				return "", errclass.New(errclass.Conflict, errclass.LockLost, "keep the lock of", item.Target.String(), "it has passed to %s", holder)
			}
		}
		return "keep the locks", nil
	})
}

func (l locks) Release(_ context.Context, t *api.Transaction, _ Search) error {
	return l.call("release the locks", func() (string, error) {
		for _, item := range t.Status.Items {
			if l.locks[item.Target.Name] == ours {
				delete(l.locks, item.Target.Name)
			}
		}
		return "release the locks", nil
	})
}

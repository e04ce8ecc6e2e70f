package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
)

// awaiting waits for changes that are in effect, and done only once a gate says so. What a
// gate says is recorded before anything relies on it.
type awaiting struct {
	*saga
	missing error // what the last look found missing, if nothing was done since
}

// checkReady checks whether what is waited for is ready. What it misses is no reason to wait, as
// long as something else is to be done.
func (s *awaiting) checkReady(ctx context.Context) (err error) {
	s.missing, err = s.checkAll(ctx)
	return err
}

// await waits for what is not ready, as it was found just now or is found again.
func (s *awaiting) await(ctx context.Context) error {
	if s.missing != nil {
		return s.missing
	}
	missing, err := s.checkAll(ctx)
	if err != nil {
		return err
	}
	return missing
}

// checkDue reports whether something is waited for that was not looked at lately, or not
// since its time was over.
func (s *awaiting) checkDue() bool {
	items := awaited(s.txn)
	if len(items) == 0 {
		return false
	}
	ago := s.memory.SinceCheckedReady()
	return ago < 0 || ago >= pollInterval || slices.ContainsFunc(items, func(i int) bool {
		left, limited := readyTimeLeft(s.txn, i, s.clock.Now())
		return limited && left <= 0 && -left < ago
	})
}

// checkAll checks whether what is waited for is done, and starts rolling back if it cannot
// become so or has had its time. It says what is missing if there was nothing to record.
func (s *awaiting) checkAll(ctx context.Context) (missing, err error) {
	s.memory.CheckedReady()
	items := plan.Waiting(s.txn.Status.Items)
	if _, err := s.keepLocks(ctx); err != nil {
		return nil, s.stopMakingIf(ctx, items[0], err)
	}
	if len(plan.BegunAhead(&s.txn.Status, s.clock.Now())) > 0 {
		return nil, s.recordAndOpen(ctx)
	}
	return s.checkItems(ctx, items)
}

func (s *awaiting) checkItems(ctx context.Context, items []int) (wait, err error) {
	var found looks
	for _, i := range items {
		if cause := s.look(ctx, i, &found); cause != nil {
			return nil, s.failItem(ctx, *cause)
		}
	}
	if len(found.ready)+len(found.holding)+len(found.broken) > 0 {
		return nil, s.record(ctx, func(status *api.TransactionStatus) error {
			found.note(status.Items, s.now())
			return nil
		})
	}
	if found.unclear != nil {
		return found.unclear, nil
	}
	lacks := &errclass.Error{Op: "waiting for", Target: strings.Join(found.missing, "; "), Class: errclass.Retryable, Reason: plan.NotReady}
	lacks.RetryAfter, lacks.Awaited = s.pollTime(items), found.awaited()
	return lacks, nil
}

// looks are what was found about the items that are waited for.
type looks struct {
	ready   []int
	holding []int // readyWhen or goneWhen holds, and must hold for a while
	broken  []int // held before, and do not hold now
	missing []string
	unclear error
	// objects are those that the items which are waited for depend on; untold is set if those of
	// one are not known.
	objects map[errclass.Awaited]bool
	untold  bool
}

// depends notes what an item that is not ready depends on.
func (l *looks) depends(on []objectid.ID) {
	l.untold = l.untold || len(on) == 0
	if l.objects == nil {
		l.objects = map[errclass.Awaited]bool{}
	}
	for _, id := range on {
		l.objects[errclass.Awaited{ID: id}] = true
	}
}

// awaited are the objects whose changes may make all that is waited for ready, if all are known.
func (l *looks) awaited() []errclass.Awaited {
	if l.untold {
		return nil
	}
	return slices.SortedFunc(maps.Keys(l.objects), func(a, b errclass.Awaited) int { return a.Compare(b.ID) })
}

// note writes into the items what was found.
func (l looks) note(items []api.Item, now *metav1.Time) {
	for _, i := range l.ready {
		items[i].ReadyTime = now
	}
	for _, i := range l.holding {
		items[i].HoldStartTime = now
	}
	for _, i := range l.broken {
		items[i].HoldStartTime = nil
	}
}

// look looks at one item, and returns why everything is to be rolled back, if it is.
func (s *awaiting) look(ctx context.Context, i int, into *looks) *plan.Cause {
	item, change := &s.txn.Status.Items[i], s.txn.Spec.Changes[i]
	found, err := s.Gates.Ready(ctx, s.txn, i)
	message := found.Message
	switch {
	case plan.Definite(err):
		return new(plan.ItemCause(s.txn, i, err))
	case err != nil:
		into.unclear, message = err, errclass.Message(err)
	case found.Failed:
		return neverReady(item, errclass.ReadyFailed, message)
	case found.Ready && (!plan.MustHold(change) || item.HoldStartTime != nil && plan.HoldLeft(s.txn, i, s.clock.Now()) <= 0):
		into.ready = append(into.ready, i)
		return nil
	case found.Ready && item.HoldStartTime == nil:
		into.holding = append(into.holding, i)
		return nil
	case found.Ready:
		message = fmt.Sprintf("%s: readyWhen or goneWhen has held since %s, and must hold for %s",
			item.Target.String(), item.HoldStartTime.UTC().Format(time.TimeOnly+"Z"), plan.HoldFor(change))
	case item.HoldStartTime != nil:
		into.broken = append(into.broken, i)
	}
	if left, limited := readyTimeLeft(s.txn, i, s.clock.Now()); limited && left <= 0 {
		return neverReady(item, errclass.ReadyTimeout, fmt.Sprintf("not ready within %s: %s", *plan.ReadyTimeout(change), message))
	}
	into.missing = append(into.missing, message)
	into.depends(found.On)
	return nil
}

func neverReady(item *api.Item, reason, message string) *plan.Cause {
	return &plan.Cause{Reason: reason, Message: errclass.Printable(message), Item: item.Name}
}

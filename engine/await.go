package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
)

// awaiting waits for changes that are in effect, and for targets that are restored, which are
// done only once a gate says so. What a gate says is recorded before anything relies on it.
type awaiting struct {
	*saga
	missing error  // what the last look found missing, if nothing was done since
	round   *round // that has not looked at all yet
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
	items := plan.Awaited(s.txn)
	if kept, err := s.keep(ctx, items[0]); !kept || err != nil {
		return nil, err
	}
	if len(plan.BegunAhead(&s.txn.Status, s.clock.Now())) > 0 {
		return nil, s.recordAndOpen(ctx)
	}
	return s.checkItems(ctx, items)
}

// keep keeps the locks. That one was lost ends the changes; a rollback goes on without it, and
// without any once it has had its time.
func (s *awaiting) keep(ctx context.Context, first int) (kept bool, err error) {
	if s.txn.Status.Phase != api.PhaseRollingBack {
		if _, err = s.keepLocks(ctx); err != nil {
			return false, s.stopMakingIf(ctx, first, err)
		}
		return true, nil
	}
	_, err = s.keepLocksIfPossible(ctx)
	if err != nil && !isJournal(err) && plan.RollbackOverdue(s.txn, s.clock.Now()) {
		return true, nil
	}
	return err == nil, err
}

// round is a look at all that is waited for, which may take several steps.
type round struct {
	left  []int
	found looks
}

// newRound begins a look with the item that the last one had no time for.
func (s *awaiting) newRound(items []int) *round {
	first, _ := slices.BinarySearch(items, s.memory.LookFrom())
	return &round{left: slices.Concat(items[first:], items[:first]), found: looks{uids: map[int]types.UID{}}}
}

// lookRound looks at those of a round that it has not looked at, until there are none or the step has had its
// time.
func (s *awaiting) lookRound(ctx context.Context, r *round, items []int) *plan.Cause {
	for n := 0; len(r.left) > 0 && (n == 0 || !s.enough()); n++ {
		i := r.left[0]
		if r.left = r.left[1:]; !slices.Contains(items, i) {
			continue
		}
		if cause := s.look(ctx, i, &r.found); cause != nil {
			return cause
		}
	}
	next := 0
	if len(r.left) > 0 {
		next = r.left[0]
	}
	s.memory.SetLookFrom(next)
	return nil
}

func (s *awaiting) checkItems(ctx context.Context, items []int) (wait, err error) {
	r := s.round
	if r == nil {
		r = s.newRound(items)
	}
	s.round = nil
	if cause := s.lookRound(ctx, r, items); cause != nil {
		return nil, s.fail(ctx, plan.IndexOf(s.txn.Status.Items, cause.Item), *cause)
	}
	found := &r.found
	if len(found.ready)+len(found.holding)+len(found.broken) > 0 {
		return nil, s.record(ctx, func(status *api.TransactionStatus) error {
			return s.note(status.Items, *found)
		})
	}
	switch {
	case found.unclear != nil:
		return found.unclear, nil
	case len(r.left) > 0:
		s.round = r
		return nil, nil // What is missing is known once all are looked at.
	}
	s.memory.CheckedReady() // It may have taken longer than the wait for the next one.
	lacks := &errclass.Error{Op: "waiting for", Target: strings.Join(found.missing, "; "), Class: errclass.Retryable, Reason: plan.NotReady}
	lacks.RetryAfter, lacks.Awaited = s.pollTime(items), found.awaited()
	return lacks, nil
}

// fail ends the wait for an item: everything is rolled back, or it is restored and not ready.
func (s *awaiting) fail(ctx context.Context, i int, cause plan.Cause) error {
	if s.txn.Status.Phase == api.PhaseRollingBack {
		return rollback{s.saga}.leaveNotReady(ctx, i, cause)
	}
	return s.failItem(ctx, cause)
}

// looks are what was found about the items that are waited for.
type looks struct {
	ready   []int
	uids    map[int]types.UID // of the targets of those
	holding []int             // what is waited for is so, and must be so for a while
	broken  []int             // it was so before, and is not now
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
func (s *awaiting) note(items []api.Item, l looks) error {
	now := s.now()
	for _, i := range l.holding {
		*plan.TimesOf(&items[i]).Hold = now
	}
	for _, i := range l.broken {
		*plan.TimesOf(&items[i]).Hold = nil
	}
	for _, i := range l.ready {
		plan.NoteResult(&items[i], plan.WaitCondition(s.txn, i), true, *now, "")
		if items[i].Guard {
			items[i].GuardUID = l.uids[i]
		}
		if err := plan.EndWait(&items[i], now); err != nil {
			return err
		}
	}
	return nil
}

// ask asks the gate of the wait that item i is in.
func (s *awaiting) ask(ctx context.Context, i int) (Readiness, error) {
	if plan.Restoring(&s.txn.Status.Items[i]) {
		return s.Gates.Restored(ctx, s.txn, i)
	}
	return s.Gates.Ready(ctx, s.txn, i)
}

// look looks at one item, and returns why everything is to be rolled back, if it is.
func (s *awaiting) look(ctx context.Context, i int, into *looks) *plan.Cause {
	item, now := &s.txn.Status.Items[i], s.clock.Now()
	found, err := s.ask(ctx, i)
	message, since := found.Message, *plan.TimesOf(item).Hold
	switch {
	case plan.Definite(err):
		return new(plan.ItemCause(s.txn, i, err))
	case err != nil:
		into.unclear, message = err, item.Target.String()+": "+errclass.Message(err)
	case found.Failed && !plan.Restoring(item): // What a status says may be of before the compensation.
		return s.neverReady(i, errclass.ReadyFailed, found, message)
	case found.Ready && (!plan.MustHold(s.txn, i) || since != nil && plan.HoldLeft(s.txn, i, now) <= 0):
		into.ready = append(into.ready, i)
		into.uids[i] = found.UID
		return nil
	case found.Ready && since == nil:
		into.holding = append(into.holding, i)
		return nil
	case found.Ready:
		message = fmt.Sprintf("%s: readyWhen or goneWhen has held since %s, and must hold for %s",
			item.Target.String(), since.UTC().Format(time.TimeOnly+"Z"), plan.HoldFor(s.txn, i))
	case since != nil:
		into.broken = append(into.broken, i)
	}
	if left, limited := readyTimeLeft(s.txn, i, now); limited && left <= 0 {
		return s.neverReady(i, errclass.ReadyTimeout, found, fmt.Sprintf("not ready within %s: %s", *plan.ReadyTimeout(s.txn, i), message))
	}
	if plan.Restoring(item) && plan.RollbackOverdue(s.txn, now) {
		return s.neverReady(i, errclass.DeadlineExceeded, found, fmt.Sprintf("not ready within spec.timeout (%s): %s", plan.Timeout(s.txn), message))
	}
	into.missing = append(into.missing, message)
	into.depends(found.On)
	return nil
}

// neverReady is the cause of the end of a wait, with the condition that ends it.
func (s *awaiting) neverReady(i int, reason string, found Readiness, message string) *plan.Cause {
	result := api.ConditionResult{Condition: plan.WaitCondition(s.txn, i), Time: *s.now(), Message: found.Message}
	if found.ByFailWhen {
		result.Condition, result.Holds = api.ConditionFailWhen, true
	}
	return &plan.Cause{Reason: reason, Message: errclass.Printable(message), Item: s.txn.Status.Items[i].Name, Result: &result}
}

package engine

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/memory"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/outcome"
)

// sent is what has come of a change.
type sent struct {
	in        Intent
	made      types.UID
	unchanged bool
	warnings  []string
	err       error
}

// send makes changes. One that is refused when no earlier request for it can still land
// is known not to be in effect; otherwise the refusal proves nothing, and the target
// tells.
func (s committing) send(ctx context.Context, l locked, these ...int) error {
	all := make([]sent, len(these))
	for n, i := range these {
		in, err := s.intent(l, i, api.ItemCommitting)
		if err != nil {
			return err
		}
		in.made = func(object types.UID) { all[n].made = object }
		in.unchanged = func() { all[n].unchanged = true }
		in.warn = func(warnings []string) { all[n].warnings = warnings }
		all[n].in = in
		s.flight.Happened(i, plan.Sent)
	}
	fanout.Do(len(all), len(all), func(n int) { all[n].err = s.Changes.Do(ctx, all[n].in) })
	for n := range all {
		s.noteResult(&all[n])
	}
	return s.conclude(ctx, all)
}

// noteResult notes what is known of a change that was sent.
func (s committing) noteResult(c *sent) {
	switch i := c.in.Index(); {
	case c.err == nil:
		s.unsure(i) // Should the record get lost, a refusal of another attempt proves nothing.
		*s.flight.Answer(i) = memory.Answer{Made: c.made, Unchanged: c.unchanged, Warnings: c.warnings}
		s.flight.Happened(i, plan.Ended)
	case !isJournal(c.err) && !plan.Definite(c.err) && (errclass.ClassOf(c.err) == errclass.Unknown || errclass.Is(c.err, errclass.Terminating)):
		s.unsure(i)
	}
}

// conclude does what follows from what has come of changes: it starts rolling back if one was
// refused, and gives the first error that may heal otherwise.
func (s committing) conclude(ctx context.Context, all []sent) error {
	var pending error
	var refused []*sent
	for n := range all {
		switch err := all[n].err; {
		case isJournal(err):
			return err
		case plan.Definite(err):
			refused = append(refused, &all[n])
		case err != nil:
			pending = bothPending(pending, err)
		}
	}
	if len(refused) == 0 {
		return pending
	}
	if first := refused[0]; !s.flight.Known[first.in.Index()].NoEffect() {
		return s.refused(ctx, first.in, first.err)
	}
	if plan.GoesOn(s.txn) {
		return s.goOnWithout(ctx, refused)
	}
	return s.reject(ctx, refused)
}

// bothPending is the first of two errors that may heal. It waits for the objects of both.
func bothPending(first, second error) error {
	if first == nil {
		return second
	}
	var own *errclass.Error
	if !errors.As(first, &own) || len(own.Awaited) == 0 {
		return first
	}
	both, others := *own, errclass.AwaitedBy(second)
	if both.Awaited = nil; len(others) > 0 {
		both.Awaited = slices.Concat(own.Awaited, others)
	}
	return &both
}

// refused deals with a refusal that proves nothing: an earlier request for the same
// change may have landed. That is then the conflict that this one met, and the
// change is in effect.
func (s committing) refused(ctx context.Context, in Intent, refusal error) error {
	if errclass.ClassOf(refusal) == errclass.Conflict {
		in.warn = s.warner(in.Index())
		if finding, err := s.Changes.Observe(ctx, in); err == nil && finding == outcome.Applied {
			s.flight.Happened(in.Index(), plan.Ended)
			return nil
		}
	}
	return s.failItem(ctx, plan.ItemCause(s.txn, in.Index(), refusal))
}

// reject records that changes were refused, and starts rolling back because of the first. Of one
// that an earlier request may have made it is found out while rolling back.
func (s committing) reject(ctx context.Context, refused []*sent) error {
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		for _, c := range refused {
			i := c.in.Index()
			cause, item := plan.ItemCause(s.txn, i, c.err), &status.Items[i]
			item.Reason, item.Message = cause.Reason, cause.Message
			if !s.flight.Known[i].NoEffect() {
				continue
			}
			if err := plan.MoveItem(item, api.ItemRejected); err != nil {
				return err
			}
		}
		return s.recordRollback(status, plan.ItemCause(s.txn, refused[0].in.Index(), refused[0].err))
	})
}

func (s committing) goOnWithout(ctx context.Context, refused []*sent) error {
	var causes []plan.Cause
	known := map[string]bool{}
	for _, c := range refused {
		cause := plan.ItemCause(s.txn, c.in.Index(), c.err)
		causes, known[cause.Item] = append(causes, cause), s.flight.Known[c.in.Index()].NoEffect()
	}
	return goingOn(s).fail(ctx, causes, known)
}

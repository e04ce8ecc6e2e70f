package wiring

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/target"
)

// maxLooks is how often a target is looked at that another client writes at the same time.
const maxLooks = 5

// trial is what came of trying the change of an item: why it could not be tried, or an error.
// It has nothing of the objects themselves: those of all items may take much memory.
type trial struct {
	later string
	err   error
	// plan is what the change would do, if that is asked for, and report what it would take
	// and warn of.
	plan   *api.Plan
	report report
	// bytes is what its before-image takes; zero if it could not be tried.
	bytes int64
}

// try makes each change without effect, several at once, but for those that would meet
// what is not there yet.
func (f *preflight) try(ctx context.Context) ([]plan.Problem, error) {
	sound, tries := f.sound(), f.begun.tries
	sound, trials, err := f.trials(ctx, sound, tries)
	if err != nil {
		return nil, err
	}
	if f.unfinished && allWell(trials) {
		return nil, nil
	}
	if err := f.later(ctx, sound, trials); err != nil {
		return nil, err
	}
	var problems []plan.Problem
	for n, o := range trials {
		f.notePlan(sound[n], o)
		switch i := sound[n]; {
		case o.err != nil:
			problems = append(problems, plan.Problem{Item: i, Err: o.err})
		case o.later != "":
			f.deferred = append(f.deferred, plan.Deferral{Item: i, Why: o.later})
		}
	}
	f.planAwaits()
	problems = append(problems, f.overweight(sound, trials)...)
	// What may heal is waited for, unless something will not.
	if len(problems) > 0 && len(f.problems) == 0 && !slices.ContainsFunc(problems, func(p plan.Problem) bool { return !mayHeal(p.Err) }) {
		return nil, problems[0].Err
	}
	if f.stopped = f.stopped || f.unfinished; f.unfinished {
		return problems, nil
	}
	if (len(problems)+len(f.problems) == 0 || plan.GoesOn(f.txn)) && !f.txn.Spec.DryRun {
		f.planner.tried.keep(tries)
	}
	return problems, nil
}

// trialTime is for how long changes are tried although one of them fails with what may heal.
const trialTime = 10 * time.Second

// trials tries the changes of some items, and returns which it has tried. Where requests are not
// answered in time it stops: the rest would take as long, while the worker is missing elsewhere, and
// all of it is tried again anyhow.
func (f *preflight) trials(ctx context.Context, sound []int, tries *tries) (tried []int, all []trial, err error) {
	waits, mine, began := f.waits(), f.refusals, f.clock.Now()
	known := earlier{listed: f.list(ctx, f.worthListing(sound, nil))}
	d, err := f.deferring()
	if err != nil {
		return nil, nil, err
	}
	trials, left := make([]trial, len(sound)), make([]bool, len(sound))
	var hopeless, unfinished atomic.Bool
	var refused, fresh atomic.Int64
	fanout.Do(f.parallel, len(sound), func(n int) {
		i := sound[n]
		_, deferred := mine[i]
		found, done := f.begun.done[i]
		switch {
		case hopeless.Load():
			left[n] = true
		case done:
			trials[n] = found
		case fresh.Load() > 0 && f.enough() && f.planner.tried.hasRoom(f.begun):
			left[n] = true
			unfinished.Store(true)
		case deferred:
			trials[n] = f.trialOf(i)
		default:
			trials[n] = f.tryItem(ctx, i, waits[i], known, tries)
			if trials[n].err == nil {
				fresh.Add(1)
			}
			late := f.clock.Since(began) >= trialTime
			if late && d.hopeless(ctx, i, trials[n].err) || d.definite(ctx, i, trials[n].err) && f.tooMany(int(refused.Add(1))) {
				hopeless.Store(true)
			}
		}
	})
	f.stopped, f.unfinished = f.stopped || hopeless.Load(), unfinished.Load()
	for n, i := range sound {
		if !left[n] {
			tried, all = append(tried, i), append(all, trials[n])
			f.begun.note(i, trials[n])
		}
	}
	if f.unfinished {
		f.planner.tried.resume(f.begun)
	}
	return tried, all, nil
}

// tryItem tries the change of one item, unless it has to wait for an earlier one, and notes
// what holds as long as the target is what it is.
func (f *preflight) tryItem(ctx context.Context, i int, wait string, known earlier, tries *tries) (o trial) {
	var s seen
	if o.later = wait; wait == "" {
		s, o.later, o.err = f.attempt(ctx, i, known)
		defer s.done()
	}
	if o.err == nil && o.later == "" {
		if o.bytes, o.err = f.weigh(i, s); o.err == nil {
			tries.add(i, s, o.bytes)
		}
	}
	if o.err == nil && plan.ShowsPlan(f.txn) {
		if o.plan, o.err = f.plan(ctx, i, o.later, s); o.later == "" {
			o.report = f.report(s)
		}
	}
	return o
}

// waits says of each item why its change cannot be tried before an earlier one is in
// effect; empty if it can.
func (f *preflight) waits() []string {
	items := f.txn.Status.Items
	out := make([]string, len(items))
	for i, later := range plan.Later(f.txn) {
		switch {
		case plan.Undecided(f.txn, i):
			out[i] = fmt.Sprintf("its activation is decided when its turn comes: item %s may change what it asks for", f.decider(i))
		case later && f.before(i) == "":
			out[i] = "its when is asked when its turn comes" + f.deletes(i)
		case later:
			out[i] = fmt.Sprintf("item %s changes %s first", f.before(i), items[i].Target.String())
		case items[i].Deferred && f.txn.Spec.Changes[i].Type == api.Create:
			out[i] = "an earlier change makes the kind or the namespace of " + items[i].Target.String()
		}
	}
	return out
}

// deletes says what is deleted if the when of item i is false.
func (f *preflight) deletes(i int) string {
	items := f.txn.Status.Items
	if f.txn.Spec.Changes[i].WhenFalse != api.WhenFalseDelete {
		return ""
	}
	var before []string
	for j := range items {
		if slices.Contains(items[j].DeletedWith, items[i].Name) && plan.MayBeDeleted(f.txn, j) {
			before = append(before, items[j].Name)
		}
	}
	if len(before) == 0 {
		return "; if it is false, the target is deleted"
	}
	return fmt.Sprintf("; if it is false, the target is deleted, and before it those of items %s", strings.Join(before, ", "))
}

// decider names the last item that may decide the activation of item i.
func (f *preflight) decider(i int) string {
	before := plan.Deciders(f.txn, i)
	if len(before) == 0 {
		return ""
	}
	return f.txn.Status.Items[before[len(before)-1]].Name
}

// before names the last item before i with the same target that is to be made.
func (f *preflight) before(i int) string {
	items := f.txn.Status.Items
	own, err := refOf(items[i])
	for j := i - 1; j >= 0 && err == nil; j-- {
		var ref target.Ref
		if ref, err = refOf(items[j]); err == nil && ref.ID() == own.ID() && items[j].Changes() {
			return items[j].Name
		}
	}
	return ""
}

// attempt tries the change of an item. What it meets may be the doing of another
// Transaction, which may be rolled back: that counts only of a target that nobody has
// locked, before and after. A change of one that is locked is tried under its own lock.
func (f *preflight) attempt(ctx context.Context, i int, known earlier) (s seen, later string, err error) {
	free := false
	for range maxLooks {
		s, err := f.look(ctx, i, known)
		known = earlier{}
		if err == nil || mayHeal(err) {
			return s, "", err
		}
		holder, lockErr := f.holder(ctx, i)
		switch {
		case lockErr != nil:
			return seen{}, "", lockErr
		case holder != "" && plan.NeedsApproval(f.txn):
			return seen{}, "", errclass.New(errclass.Retryable, errclass.LockHeld, "plan the change of", f.txn.Status.Items[i].Target.String(),
				"its lock is held by %s; waiting until it is released or expires", holder)
		case holder != "":
			return seen{}, f.txn.Status.Items[i].Target.String() + " is locked by " + holder, nil
		case free && !errclass.Is(err, errclass.Drifted):
			return seen{}, "", err
		}
		free = true
	}
	return seen{}, "", errclass.New(errclass.Retryable, errclass.StaleVersion, "try the change of", f.txn.Status.Items[i].Target.String(),
		"it changes faster than it can be looked at")
}

// holder is who has the lock of an item's target; empty if nobody has.
func (f *preflight) holder(ctx context.Context, i int) (string, error) {
	ref, err := refOf(f.txn.Status.Items[i])
	if err != nil {
		return "", err
	}
	holders, err := f.planner.locks.HoldersOf(ctx, keyOf(ref))
	for i := range holders {
		holders[i] = api.DescribeHolder(holders[i])
	}
	return strings.Join(holders, " and "), explainLock(err)
}

// plan tells what the change of an item would do. Several are made at once: it changes
// nothing that another looks at.
func (f *preflight) plan(ctx context.Context, i int, later string, s seen) (*api.Plan, error) {
	if later != "" {
		return &api.Plan{Effect: api.EffectDeferred, Deferred: errclass.Cut(errclass.Printable(later), 512)}, nil
	}
	out, err := planOf(ctx, f.txn, i, s)
	if err == nil && plan.NeedsApproval(f.txn) {
		out.Digest, err = f.fingerprint(ctx, i, s)
	}
	return out, err
}

// planAwaits tells that Awaits change nothing.
func (f *preflight) planAwaits() {
	for i := range f.txn.Status.Items {
		if item := &f.txn.Status.Items[i]; plan.ShowsPlan(f.txn) && item.Type == api.Await && item.State != api.ItemSkipped && !f.wrong[i] {
			item.Plan = &api.Plan{Effect: api.EffectNone}
		}
	}
}

// notePlan notes it.
func (f *preflight) notePlan(i int, o trial) {
	if o.plan == nil {
		return
	}
	item := &f.txn.Status.Items[i]
	if item.Plan = o.plan; o.later == "" {
		item.Taken, item.Warnings = o.report.taken, o.report.warnings
	}
}

// mayHeal reports an error that the same attempt may not meet later.
func mayHeal(err error) bool {
	class := errclass.ClassOf(err)
	return class == errclass.Retryable || class == errclass.Unknown
}

package wiring

import (
	"context"
	"fmt"
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// deferring finds, of changes that are refused as the cluster is, the earlier change that
// may be the reason: that one is tried again when its turn comes. What none can be the
// reason of is refused before anything is changed.
type deferring struct {
	session
	order []int
	image func(context.Context, api.Item) (map[string]any, error)
}

func (s session) deferring() (*deferring, error) {
	order, err := plan.Order(s.txn)
	d := &deferring{session: s, order: order}
	if s.undo != nil {
		d.image = s.undo.image
	}
	return d, err
}

// by returns the last item before i that may be the reason why its change was refused; -1
// for none.
func (d *deferring) by(ctx context.Context, i int, refusal error) (int, error) {
	if j := d.undecided(i, refusal); j >= 0 {
		return j, nil
	}
	if hurdleOf(refusal) == "" {
		return -1, nil
	}
	later, err := d.step(ctx, i, true)
	if err != nil {
		return -1, err
	}
	// One after the other: the contents of all may take much memory.
	for _, j := range slices.Backward(d.order[:max(slices.Index(d.order, i), 0)]) {
		if !d.txn.Status.Items[j].Changes() || d.txn.Status.Items[j].Resource == "" {
			continue
		}
		earlier, err := d.step(ctx, j, false)
		if err != nil {
			return -1, err
		}
		if explains(earlier, later, refusal) {
			return j, nil
		}
	}
	return -1, nil
}

// hopeless reports an error of item i that may heal, and that no earlier change may be the reason of.
func (d *deferring) hopeless(ctx context.Context, i int, err error) bool {
	if err == nil || !mayHeal(err) {
		return false
	}
	j, err := d.by(ctx, i, err)
	return j < 0 || err != nil
}

// definite reports an error of item i that will not heal, and that no earlier change may be the reason of.
func (d *deferring) definite(ctx context.Context, i int, err error) bool {
	if err == nil || mayHeal(err) {
		return false
	}
	j, err := d.by(ctx, i, err)
	return j < 0 && err == nil
}

// undecided is the last item with whose target that of item i may be deleted, if what refuses its change is
// that there is one, or none: then it is not known yet whether that is to be made. It is -1 for none, and
// once that is decided.
func (d *deferring) undecided(i int, refusal error) int {
	items := d.txn.Status.Items
	if with := items[i].DeletedWith; len(with) > 0 && d.txn.Status.Phase != api.PhaseCommitting &&
		(errclass.Is(refusal, errclass.AlreadyExists) || hurdleOf(refusal) == absent) {
		return plan.IndexOf(items, with[len(with)-1])
	}
	return -1
}

// step is a change as explanations look at it. Of an undo, the content is that of the
// object which it restores. Content that no explanation looks at is left out, unless all is
// wanted: to read those of all changes for each that is refused would take long.
func (d *deferring) step(ctx context.Context, i int, all bool) (step, error) {
	item := d.txn.Status.Items[i]
	ref, err := refOf(item)
	if err != nil {
		return step{}, err
	}
	if !all && ref.GVK.Group != rolesGroup {
		return step{plan.ChangeOf(d.txn, i).Type, ref, nil, accountOf(d.txn)}, nil
	}
	content, err := d.sources.content(ctx, d.txn, i, d.id)
	if err == nil && d.image != nil {
		content, err = d.image(ctx, item)
	}
	if err != nil && !mayHeal(err) {
		content, err = nil, nil // That is what is wrong with the item, and is told as that.
	}
	return step{plan.ChangeOf(d.txn, i).Type, ref, content, accountOf(d.txn)}, err
}

// why says by which earlier item a change is deferred, and what refuses it until then.
func (d *deferring) why(i, j int, refusal error) string {
	if d.undecided(i, refusal) == j {
		return fmt.Sprintf("whether it is made is decided by the when of item %s, and as it is now, it is refused (%s)",
			d.txn.Status.Items[j].Name, errclass.ReasonOf(refusal))
	}
	return fmt.Sprintf("item %s changes %s first, and may be the reason why it is refused now (%s)",
		d.txn.Status.Items[j].Name, d.txn.Status.Items[j].Target.String(), errclass.ReasonOf(refusal))
}

// put defers the items of problems that an earlier change may be the reason of, and returns
// the others.
func (f *preflight) put(ctx context.Context, problems []plan.Problem) (left []plan.Problem, err error) {
	if len(problems) == 0 {
		return nil, nil
	}
	d, err := f.deferring()
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		j, err := d.by(ctx, p.Item, p.Err)
		switch {
		case err != nil:
			return nil, err
		case j < 0:
			left = append(left, p)
		default:
			f.deferBy(d, p, j)
		}
	}
	return left, nil
}

// deferBy notes that item j may be the reason of a problem. The last of several counts.
func (f *preflight) deferBy(d *deferring, p plan.Problem, j int) {
	item := &f.txn.Status.Items[p.Item]
	names := func(i int) bool { return f.txn.Status.Items[i].Name == item.DeferredBy }
	if known := slices.IndexFunc(d.order, names); known >= 0 && known > slices.Index(d.order, j) {
		return
	}
	item.DeferredBy = f.txn.Status.Items[j].Name
	f.refusals[p.Item] = refusal{why: d.why(p.Item, j, p.Err), err: p.Err}
}

// refusal is why a change is deferred that is refused now.
type refusal struct {
	why string
	err error
}

// later returns the changes that are deferred because they are refused now, as trials.
func (f *preflight) later(ctx context.Context, sound []int, trials []trial) error {
	d, err := f.deferring()
	if err != nil {
		return err
	}
	for n, o := range trials {
		if o.err == nil {
			continue
		}
		j, err := d.by(ctx, sound[n], o.err)
		if err != nil {
			return err
		}
		if j < 0 {
			continue
		}
		f.deferBy(d, plan.Problem{Item: sound[n], Err: o.err}, j)
		trials[n] = f.trialOf(sound[n])
	}
	return nil
}

// trialOf is what came of trying a change that is deferred because it is refused now.
func (f *preflight) trialOf(i int) trial {
	r := f.refusals[i]
	o := trial{later: r.why}
	if plan.ShowsPlan(f.txn) {
		room := min(512, max(plan.FieldsShare(len(f.txn.Status.Items)), 100))
		o.plan = &api.Plan{Effect: api.EffectDeferred, Deferred: errclass.Cut(errclass.Printable(r.why+": "+r.err.Error()), room)}
	}
	return o
}

// deferAgain defers the items that are refused under the lock, before anything is changed,
// where an earlier change may be the reason. Once their turn has come, none is left.
func (s session) deferAgain(ctx context.Context, items []int, prepared []engine.PreparedItem, problems []error) error {
	if t := s.txn; t.Status.Phase != api.PhasePreparing || len(notNil(problems)) == 0 {
		return nil
	}
	d, err := s.deferring()
	if err != nil {
		return err
	}
	for n, refusal := range problems {
		if refusal == nil {
			continue
		}
		j, err := d.by(ctx, items[n], refusal)
		if err != nil {
			return err
		}
		if j >= 0 {
			prepared[n], problems[n] = engine.PreparedItem{DeferredBy: s.txn.Status.Items[j].Name}, nil
		}
	}
	return nil
}

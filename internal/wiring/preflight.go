package wiring

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/target"
)

// Validate looks for everything that would keep the changes from being made or rolled
// back: it resolves every target, checks the changes against themselves, asks for the
// rights that they and their compensations need, and tries each that can be tried now.
// Nothing is written. All that is wrong is reported at once.
//
// To try the changes may take long. It stops once enough reports true, and keeps what it has found.
func (p *Planner) Validate(ctx context.Context, t *api.Transaction, enough func() bool) (plan.Preflight, error) {
	s, err := p.session(ctx, t.DeepCopy())
	if err != nil {
		return plan.Preflight{}, err
	}
	s.load = fanout.NewLoad(loadBytes)
	f := &preflight{session: s, planner: p, refusals: map[int]refusal{}, enough: enough, begun: p.tried.resumable(t.UID, s.id.UID)}
	if f.undo, err = p.undoOf(ctx, t); err != nil {
		return plan.Preflight{}, err
	}
	if err := f.undo.derive(f.txn); err != nil {
		return plan.Preflight{}, err
	}
	f.wrong = make([]bool, len(f.txn.Spec.Changes))
	for _, look := range f.checks() {
		found, err := look(ctx)
		if err != nil {
			return plan.Preflight{}, err
		}
		if err := f.advise(ctx, found); err != nil {
			return plan.Preflight{}, err
		}
		f.note(found)
		if f.tooMany(len(f.problems)) {
			f.stopped = true
			break
		}
	}
	if f.unfinished && len(f.problems) == 0 {
		return plan.Preflight{Unfinished: true}, nil
	}
	p.tried.end(t.UID)
	f.explainOrder()
	return plan.Preflight{Items: f.txn.Status.Items, Account: f.id.UID, Deferred: f.deferred, Problems: f.problems, Stopped: f.stopped}, nil
}

// mostProblems is at how many problems no more are looked for: what is wrong is clear by then, and to
// find out the rest would take requests that help nobody.
const mostProblems = 100

// tooMany reports whether so many problems end a pre-flight. One that goes on without the changes that
// are refused has to know of all.
func (f *preflight) tooMany(problems int) bool {
	return problems >= mostProblems && !plan.GoesOn(f.txn)
}

// preflight is one look at all changes of a Transaction.
type preflight struct {
	// session has a copy of the Transaction, with what is known of its items.
	session
	planner *Planner
	// wrong are the items that problems were found with. What comes after does not look
	// at them again.
	wrong    []bool
	problems []plan.Problem
	// enough tells it to stop, which it has if it is unfinished, and begun is what it has found by then.
	enough     func() bool
	begun      *resumable
	unfinished bool
	// stopped is set once not all are looked for.
	stopped  bool
	deferred []plan.Deferral
	// refusals are those of items that are deferred because an earlier change may be the
	// reason.
	refusals map[int]refusal
}

// A check returns what is wrong with items that nothing was found wrong with before. Its
// error is about all of them, or worth another try.
type check func(ctx context.Context) ([]plan.Problem, error)

// checks are in the order in which they rely on each other.
func (f *preflight) checks() []check {
	return []check{f.resolve, f.fit, f.inTime, f.mayDo, f.try, f.tryDeletions}
}

func (f *preflight) note(found []plan.Problem) {
	for _, p := range found {
		f.wrong[p.Item] = true
	}
	f.problems = append(f.problems, found...)
	slices.SortStableFunc(f.problems, func(a, b plan.Problem) int { return a.Item - b.Item })
}

// validation begins to go through the changes. The kinds that are served are looked up once.
func (f *preflight) validation(ctx context.Context) validation {
	kinds := sync.OnceValues(f.resolver.Kinds)
	return validation{
		resolver: f.resolver, txn: f.txn,
		namespaces: map[string]bool{}, names: map[string]bool{}, definitions: map[string]map[string]any{},
		live:      func(ref target.Ref) (map[string]any, error) { return f.definition(ctx, ref) },
		image:     func(item api.Item) (map[string]any, error) { return f.undo.image(ctx, item) },
		activated: func(of api.Target, a *api.Activation) (bool, error) { return activated(ctx, f.resolver, kinds, of, a) },
	}
}

// resolve finds the resource of each target, and checks the changes against themselves. Of a
// change that is not activated, and of one that depends on it, nothing more is asked, and no
// content.
func (f *preflight) resolve(ctx context.Context) ([]plan.Problem, error) {
	v := f.validation(ctx)
	order, err := plan.Order(f.txn)
	if err != nil {
		return nil, err
	}
	items, wrong := make([]api.Item, len(f.txn.Spec.Changes)), make([]error, len(f.txn.Spec.Changes))
	f.txn.Status.Items = items
	for _, i := range order {
		items[i], wrong[i] = v.begin(i, f.txn.Spec.Changes[i])
	}
	if err := plan.SkipDependents(f.txn, items); err != nil {
		return nil, err
	}
	var read []int
	for i, first := range plan.SourcesChanged(f.txn) {
		switch {
		case wrong[i] != nil || items[i].State == api.ItemSkipped:
		case first >= 0:
			wrong[i] = readTooLate(f.txn, i, first)
		default:
			read = append(read, i)
		}
	}
	unread, err := f.pin(ctx, read)
	if err != nil {
		return nil, err
	}
	references := map[int][]objectName{}
	v.content = func(i int) (map[string]any, error) {
		if unread[i] != nil {
			return nil, unread[i]
		}
		content, err := f.sources.content(ctx, f.txn, i, f.id)
		references[i] = referencesOf(items[i].Target, content)
		return content, err
	}
	for _, i := range order {
		if wrong[i] == nil && items[i].State != api.ItemSkipped {
			wrong[i] = v.item(&items[i], i, f.txn.Spec.Changes[i])
		}
	}
	var problems []plan.Problem
	for _, i := range order {
		if wrong[i] != nil {
			problems = append(problems, plan.Problem{Item: i, Err: wrong[i]})
		}
	}
	// What could not be looked up now may be all that is wrong with the others: the kind
	// of one target may be what another defines.
	for _, p := range problems {
		if mayHeal(p.Err) {
			return nil, p.Err
		}
	}
	if f.undo != nil {
		relateUndo(f.txn, f.undo)
		return problems, nil
	}
	if err := plan.RelateDeletions(f.txn, relate(f.txn, order, references)); err != nil {
		return nil, err
	}
	return append(problems, f.undeletable(&v)...), nil
}

// pin notes in some items what pins their content, and in all whether that is confidential. It
// returns why the contents of items cannot be read.
func (f *preflight) pin(ctx context.Context, which []int) ([]error, error) {
	digests, wrong, err := f.sources.pin(ctx, f.txn, which, f.id)
	if err != nil {
		return nil, err
	}
	for i, change := range f.txn.Spec.Changes {
		item := &f.txn.Status.Items[i]
		item.ContentDigest = digests[i]
		item.Confidential = change.ContentFrom.Confidential() || f.undo.confidential(plan.ChangeName(i, change))
	}
	return wrong, nil
}

// definition reads a CustomResourceDefinition that is to be changed.
func (f *preflight) definition(ctx context.Context, ref target.Ref) (map[string]any, error) {
	live, err := f.id.Resource(ref).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case errclass.Is(err, errclass.NotFound), errclass.Is(err, errclass.AccessDenied):
		return nil, nil // That is found out by anyone who asks for the rights, and tries the change.
	case err != nil:
		return nil, errclass.Wrap(err, "read", ref.String(), false)
	}
	return live.Object, nil
}

// fit makes sure that the status can be written to the end. If it cannot, it cannot hold
// what is wrong with each item either.
func (f *preflight) fit(context.Context) ([]plan.Problem, error) {
	err := fits(f.txn)
	if err == nil {
		return nil, nil
	}
	all := []error{err}
	for _, p := range f.problems {
		all = append(all, p.Err)
	}
	return nil, first(all)
}

// inTime makes sure that the changes can all be begun before the time is up.
func (f *preflight) inTime(context.Context) ([]plan.Problem, error) {
	return nil, plan.InTime(f.txn)
}

// mayDo asks whether the ServiceAccount may make the changes and roll them back. A plan tells what
// is so now.
func (f *preflight) mayDo(ctx context.Context) ([]plan.Problem, error) {
	denied, err := f.session.mayDo(ctx, append(f.sound(), f.awaits()...), plan.ShowsPlan(f.txn) && len(f.begun.done) == 0)
	if err != nil {
		return nil, err
	}
	return f.put(ctx, denied)
}

// awaits lists the items that are only waited for, if their kinds are served.
func (f *preflight) awaits() []int {
	var out []int
	for i, item := range f.txn.Status.Items {
		if item.Type == api.Await && item.State != api.ItemSkipped && item.Resource != "" && !f.wrong[i] {
			out = append(out, i)
		}
	}
	return out
}

// sound lists the items that are to be made, and that nothing was found wrong with so far.
func (f *preflight) sound() []int {
	var out []int
	for i, wrong := range f.wrong {
		if !wrong && f.txn.Status.Items[i].Changes() {
			out = append(out, i)
		}
	}
	return out
}

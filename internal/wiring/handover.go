package wiring

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/mutate"
)

// HandOver leaves the fields of a committed Transaction to those who are to own
// them. Several targets are worked on at once.
func (c *Changes) HandOver(ctx context.Context, t *api.Transaction) (map[int]string, error) {
	s, err := c.session(ctx, t)
	if err != nil {
		return nil, err
	}
	s.load = fanout.NewLoad(loadBytes)
	chains, err := chainsOf(t)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	problems := map[int]string{}
	var pending error
	fanout.Do(c.parallel, len(chains), func(n int) {
		err := s.handOver(ctx, chains[n])
		if err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if class := errclass.ClassOf(err); class != errclass.Terminal && class != errclass.Conflict {
			pending = err
			return
		}
		problems[chains[n].last] = "the change is in effect, but its field manager stays on the target: " + errclass.Message(err)
	})
	return problems, pending
}

// chain is the run of items that have written one object, from the first after it
// was made or deleted.
type chain struct {
	first, last int
	made        bool // by the first
}

// chainsOf returns one chain for each target that exists after the commit.
func chainsOf(t *api.Transaction) ([]chain, error) {
	byTarget := map[objectid.ID]chain{}
	var order []objectid.ID
	for i := range t.Status.Items[:min(len(t.Status.Items), len(t.Spec.Changes))] {
		if item := &t.Status.Items[i]; !item.Changes() || item.Unchanged {
			continue // It has written nothing.
		}
		ref, err := refOf(t.Status.Items[i])
		if err != nil {
			return nil, err
		}
		known, ok := byTarget[ref.ID()]
		switch kind := plan.ChangeOf(t, i).Type; {
		case kind == api.Delete:
			delete(byTarget, ref.ID())
		case !ok || kind == api.Create:
			byTarget[ref.ID()] = chain{first: i, last: i, made: kind == api.Create}
			order = append(order, ref.ID())
		default:
			known.last = i
			byTarget[ref.ID()] = known
		}
	}
	var out []chain
	for _, key := range order {
		if c, ok := byTarget[key]; ok {
			out = append(out, c)
			delete(byTarget, key)
		}
	}
	return out, nil
}

func (s session) handOver(ctx context.Context, of chain) error {
	t := s.txn
	change, err := s.changeOf(of.last, nil)
	if err != nil {
		return err
	}
	// The target, its before-image and its content are about as large.
	put, err := s.load.Take(ctx, 3*s.written.bytes(t.UID, change.Ref.ID()))
	if err != nil {
		return err
	}
	defer put()
	var before mutate.Baseline
	if !of.made {
		if t.Status.Items[of.first].Before == nil {
			return imageLost(t, of.first)
		}
		before = s.baseline(of.first)
	}
	to := mutate.Ownership{
		FieldManager: t.Spec.FieldManager, Release: releaseOf(t, of.first),
		Sets: func() ([]map[string]any, error) { return s.setOn(ctx, change.Ref.ID()) },
	}
	if t.Spec.UndoOf != nil {
		to.Former = func(ctx context.Context) ([]metav1.ManagedFieldsEntry, *fieldmerge.Release, error) {
			record, err := s.record(ctx, of.last)
			return record.Owners, record.Release, err
		}
	}
	err = mutate.HandOver(ctx, change, to, before, s.written.get(t.UID, change.Ref.ID()))
	if of.made && errclass.Is(err, errclass.AccessDenied) {
		// To create an object takes no right to patch it. Nobody owned any of it before,
		// and it is created once: the manager of its item may stay.
		return nil
	}
	return s.explainDenied(ctx, change, []string{"get", "patch"}, err)
}

// ownership says who is to own the fields of a target once the change that was found has committed.
func (s session) ownership(found *seen) mutate.Ownership {
	to := mutate.Ownership{FieldManager: s.txn.Spec.FieldManager, Release: found.change.Release}
	if s.undo != nil {
		to.Former = func(context.Context) ([]metav1.ManagedFieldsEntry, *fieldmerge.Release, error) {
			return found.owners, found.change.Release, nil
		}
	}
	return to
}

// setOn returns the content of every change of a target that was made. The changes are in effect
// by now: a source that is gone is not waited for.
func (s session) setOn(ctx context.Context, key objectid.ID) ([]map[string]any, error) {
	t := s.txn
	var out []map[string]any
	for i := range t.Status.Items[:min(len(t.Status.Items), len(t.Spec.Changes))] {
		ref, err := refOf(t.Status.Items[i])
		if err != nil {
			return nil, err
		}
		if ref.ID() != key || !t.Status.Items[i].Changes() || plan.Releases(t, i) {
			continue
		}
		content, err := s.sources.content(ctx, t, i, s.id)
		if errclass.Is(err, errclass.ContentMissing) {
			return nil, errclass.New(errclass.Terminal, errclass.ContentMissing, "hand over the fields of", describeTarget(t, i),
				"%s is missing, so that it is not known which fields were set", describeSource(t, i))
		}
		if err != nil {
			return nil, err
		}
		out = append(out, content)
	}
	return out, nil
}

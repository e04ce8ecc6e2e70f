package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/controller/progress"
)

func sortByAge(all []*api.PackageTransaction) {
	slices.SortFunc(all, func(a, b *api.PackageTransaction) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// pass looks at everything once: it gives the lock to the next if it is free, tells the others
// for whom they wait, and takes the holder as far as it goes. It returns when to look again.
func (c *Controller) pass(ctx context.Context, of cache.Store) (time.Duration, error) {
	all, err := c.known(of)
	if err != nil {
		return 0, err
	}
	holder, err := c.holder(ctx, all)
	if err != nil {
		return 0, err
	}
	c.looked(all, holder)
	if err := c.tell(ctx, all, holder); err != nil {
		return 0, err
	}
	if holder == nil {
		return idle, c.retire(ctx, all)
	}
	if !c.runs(holder) {
		return c.Policy.Look, nil
	}
	return c.run(ctx, holder)
}

// holder is the PackageTransaction that has the lock, as the API server has it now; nil if there
// is none that could have it.
func (c *Controller) holder(ctx context.Context, all []*api.PackageTransaction) (*api.PackageTransaction, error) {
	record, err := c.lock.read(ctx)
	if err != nil {
		return nil, err
	}
	if name, uid, held := record.holder(); held {
		p, err := c.store.read(ctx, name)
		if err != nil {
			return nil, err
		}
		if p != nil && string(p.UID) == uid {
			return p, nil
		}
		c.Log.Info("releasing the lock of a PackageTransaction that is gone", zap.String("packageTransaction", name))
		if record, err = c.lock.release(ctx, record); err != nil {
			return nil, err
		}
	}
	highest := record.number()
	for _, p := range all {
		highest = max(highest, p.Status.TransactionNumber)
	}
	for _, next := range all {
		if next.Status.CompletionTime != nil || next.DeletionTimestamp != nil {
			continue
		}
		// The watch may be behind: what is written depends on what there is now.
		p, err := c.store.read(ctx, next.Name)
		if err != nil {
			return nil, err
		}
		if p == nil || p.UID != next.UID || p.Status.CompletionTime != nil || p.DeletionTimestamp != nil {
			continue
		}
		// First the finalizer: what has the lock does not vanish.
		if p, err = c.store.hold(ctx, p); err != nil {
			return nil, err
		}
		return p, c.lock.acquire(ctx, record, p, highest+1)
	}
	return nil, nil
}

// tell says to all others for whom they wait, and lets go of those that are to be deleted: one
// may have got its finalizer, and then not the lock.
func (c *Controller) tell(ctx context.Context, all []*api.PackageTransaction, holder *api.PackageTransaction) error {
	for _, p := range all {
		var err error
		switch {
		case holder != nil && p.UID == holder.UID:
		case p.DeletionTimestamp != nil:
			err = c.store.letGo(ctx, p)
		case holder == nil || p.Status.CompletionTime != nil:
		case progress.Queued(p, holder.Name, c.Clock.Now()):
			_, err = c.record(ctx, p)
		default:
			c.observe(p)
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", describe(p), err)
		}
	}
	return nil
}

// run takes the holder of the lock as far as it goes, and returns when to look again.
func (c *Controller) run(ctx context.Context, p *api.PackageTransaction) (time.Duration, error) {
	c.observe(p)
	if p.Status.TransactionNumber == 0 && p.DeletionTimestamp == nil {
		record, err := c.lock.read(ctx)
		if err != nil {
			return 0, err
		}
		progress.Begin(p, record.number(), c.Clock.Now())
		if p, err = c.record(ctx, p); err != nil {
			return 0, err
		}
	}
	for {
		t, foreign, err := c.store.transaction(ctx, p)
		if err != nil {
			return 0, err
		}
		step := progress.Next(p, t, c.Policy, c.Clock.Now())
		if foreign && step.Action == progress.Plan {
			progress.Taken(p, c.Policy, c.Clock.Now())
			step.Action = progress.Record
		}
		switch step.Action {
		case progress.Wait:
			return step.After, nil
		case progress.Record:
			p, err = c.record(ctx, p)
		case progress.Plan:
			p, err = c.plan(ctx, p)
		case progress.Abort:
			if err = c.store.abort(ctx, t); err == nil {
				c.aborted(p, t)
			}
		case progress.End:
			return 0, c.end(ctx, p)
		default:
			return 0, fmt.Errorf("%s: step %d is none", describe(p), step.Action)
		}
		if err != nil {
			return 0, c.unsynced(ctx, p, err)
		}
	}
}

// record writes the status, and tells what has happened by that.
func (c *Controller) record(ctx context.Context, p *api.PackageTransaction) (*api.PackageTransaction, error) {
	p, err := c.store.record(ctx, p)
	if err == nil {
		c.observe(p)
	}
	return p, err
}

// unsynced records an error of janusd's own, if that is possible.
func (c *Controller) unsynced(ctx context.Context, p *api.PackageTransaction, err error) error {
	err = fmt.Errorf("%s: %w", describe(p), err)
	if apierrors.IsConflict(err) || ctx.Err() != nil {
		return err
	}
	now, readErr := c.store.read(ctx, p.Name)
	if readErr == nil && now != nil && now.UID == p.UID && progress.Unsynced(now, err, c.Clock.Now()) {
		_, _ = c.store.record(ctx, now) // It is tried again with the next step.
	}
	return err
}

// end lets go of all that a PackageTransaction has.
func (c *Controller) end(ctx context.Context, p *api.PackageTransaction) error {
	names := []string{progress.Name(p)}
	if ref := p.Status.TransactionRef; ref != nil && ref.Name != names[0] {
		names = append(names, ref.Name)
	}
	for _, name := range names {
		if err := c.store.letGoOf(ctx, p, name); err != nil {
			return err
		}
	}
	c.aborted(p, nil)
	// The finalizer first: if this ends here, the lock has a holder that has ended or is gone.
	if err := c.store.letGo(ctx, p); err != nil {
		return err
	}
	record, err := c.lock.read(ctx)
	if err != nil {
		return err
	}
	if _, uid, held := record.holder(); held && uid == string(p.UID) {
		if _, err := c.lock.release(ctx, record); err != nil {
			return err
		}
	}
	c.Log.Info("a PackageTransaction has ended", zap.String("packageTransaction", p.Name), zap.Int64("failures", p.Status.Failures))
	return nil
}

// retire deletes those that have ended and are beyond what is to be kept, the oldest first.
func (c *Controller) retire(ctx context.Context, all []*api.PackageTransaction) error {
	if c.HistoryLimit == 0 {
		return nil
	}
	for _, p := range progress.TooMany(all, c.HistoryLimit) {
		if err := c.store.delete(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

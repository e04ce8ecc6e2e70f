package wiring

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/snapshot"
)

// DefaultWaveBytes is how many bytes of before-images are in memory until they are saved. The
// before-images of most Transactions take less, and are saved together.
const DefaultWaveBytes = 4 << 20

// capture reads the targets of items, tries their changes and saves their before-images, in
// waves: when so much is in memory, it is saved before more is read. A wave ends after the
// item that fills it, so that an attempt which meets the same objects makes the same waves,
// and takes over what an earlier one has saved. What none of them takes over no status names,
// and is removed in the end.
type capture struct {
	session
	items []int
	known earlier
	most  int // bytes of a wave
	save  func(ctx context.Context, ref *api.RollbackRef, records []snapshot.Encoded) (snapshot.Saved, error)

	prepared []engine.PreparedItem // in the order of the items
	ref      *api.RollbackRef      // of what is saved
	problems []error               // nothing is saved any more once there are some
	wave     []captured
	bytes    int   // of the wave
	seen     int64 // records, of which there is no more than their size
	size     int64
}

// captured is an item whose before-image is not saved yet.
type captured struct {
	position int // among the items
	record   snapshot.Encoded
	idle     bool
	after    string // what the change makes of the target, as a digest
}

// run returns where the before-images are. Of what is wrong it reports all.
func (c *capture) run(ctx context.Context) (*api.RollbackRef, error) {
	c.ref = c.txn.Status.RollbackRef
	c.known.listed = c.list(ctx, c.worthListing(c.items, c.known.tries))
	for from := 0; from < len(c.items); {
		to := min(from+c.next(), len(c.items))
		if err := c.block(ctx, from, to); err != nil {
			return nil, err
		}
		from = to
	}
	if len(c.problems) > 0 {
		return nil, first(c.problems)
	}
	return c.ref, c.flush(ctx)
}

// next is how many items are read next: as many as the wave has room for, by what is known of
// their size.
func (c *capture) next() int {
	average := int64(c.known.tries.average())
	if c.seen > 0 {
		average = c.size / c.seen
	}
	if average == 0 {
		return c.parallel
	}
	return max(int(int64(c.most-c.bytes)/average), 1)
}

// block reads some items, and saves what fills a wave.
func (c *capture) block(ctx context.Context, from, to int) error {
	found, problems := make([]captured, to-from), make([]error, to-from)
	fanout.Do(c.parallel, to-from, func(n int) {
		found[n].position = from + n
		problems[n] = c.item(ctx, &found[n])
	})
	if err := c.deferAgain(ctx, c.items[from:to], c.prepared[from:to], problems); err != nil {
		return err
	}
	for n, one := range found {
		switch {
		case problems[n] != nil && plan.GoesOn(c.txn) && plan.Definite(problems[n]):
			c.prepared[from+n] = engine.PreparedItem{Refused: problems[n]}
		case problems[n] != nil:
			c.problems, c.wave, c.bytes = append(c.problems, problems[n]), nil, 0
		case c.prepared[from+n].DeferredBy == "" && len(c.problems) == 0:
			c.wave, c.bytes = append(c.wave, one), c.bytes+one.record.Bytes()
			c.seen, c.size = c.seen+1, c.size+int64(one.record.Bytes())
		}
		if len(c.problems) == 0 && c.bytes >= c.most {
			if err := c.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// item reads the target of an item and finds out what its change would do.
func (c *capture) item(ctx context.Context, out *captured) error {
	i := c.items[out.position]
	if err := c.mayStill(ctx, i); err != nil {
		return c.bear(ctx, i, err)
	}
	found, err := c.look(ctx, i, c.known)
	if err != nil {
		return c.bear(ctx, i, err)
	}
	defer found.done()
	report := c.report(found)
	prepared := engine.PreparedItem{Taken: report.taken, Warnings: report.warnings}
	if plan.NeedsApproval(c.txn) && c.txn.Status.Phase == api.PhasePreparing {
		if prepared.Plan, err = c.fingerprint(ctx, i, found); err != nil {
			return err
		}
	}
	c.prepared[out.position] = prepared
	out.idle, out.after = found.forecast.Idle, found.change.Meaning(found.forecast.After)
	out.record, err = c.store.Encode(c.recordOf(i, found))
	return err
}

// flush saves the wave.
func (c *capture) flush(ctx context.Context) error {
	records := make([]snapshot.Encoded, len(c.wave))
	for n, one := range c.wave {
		records[n] = one.record
	}
	saved, err := c.save(ctx, c.ref, records)
	if err != nil {
		return err
	}
	c.ref = &saved.Ref
	for n, one := range c.wave {
		item := &c.prepared[one.position]
		item.Image = saved.Images[n]
		item.Image.Unchanged, item.Image.After = one.idle, one.after
	}
	c.wave, c.bytes = nil, 0
	return nil
}

package wiring

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// The API server goes by copies of definitions, roles, webhooks, policies and quotas. What
// an earlier change has made of one is not in effect at once, and not at the same time
// on each of several servers. So a refusal of which it may be the reason does not count for a
// while.
const (
	patienceTime  = 5 * time.Second
	patiencePause = 500 * time.Millisecond
)

// patience remembers since when changes are refused whose turn has come.
type patience struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	since map[types.UID]map[int]time.Time
}

func newPatience(c clock.PassiveClock) *patience {
	return &patience{clock: c, since: map[types.UID]map[int]time.Time{}}
}

// over reports whether item i of a Transaction has been refused for long enough.
func (p *patience) over(txn types.UID, i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since[txn] == nil {
		p.since[txn] = map[int]time.Time{}
	}
	now := p.clock.Now()
	since, known := p.since[txn][i]
	if !known || since.After(now) {
		since = now // The clock may have been set back.
		p.since[txn][i] = since
	}
	return now.Sub(since) >= patienceTime
}

func (p *patience) forget(txn types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, txn)
}

// bear returns the refusal of an item whose turn has come: as one that may heal, as long as
// what an earlier change has made of the reason may not be in effect yet. One that was not
// deferred counts too: what it was accepted by may have been on its way out.
func (s session) bear(ctx context.Context, i int, refusal error) error {
	t := s.txn
	item := &t.Status.Items[i]
	if refusal == nil || mayHeal(refusal) || t.Status.Phase != api.PhaseCommitting {
		return refusal
	}
	if item.Deferred && errclass.Is(refusal, errclass.KindNotFound) {
		return errclass.New(errclass.Retryable, errclass.KindNotFound, "wait for", item.Target.String(), "the API server does not serve that version of its kind yet")
	}
	d, err := s.deferring()
	if err != nil {
		return refusal
	}
	j, err := d.by(ctx, i, refusal)
	if err != nil || j < 0 || s.patience.over(t.UID, i) {
		return refusal
	}
	later := errclass.New(errclass.Retryable, errclass.NotInEffect, "wait for", t.Status.Items[j].Target.String(),
		"what item %s has changed may not be in effect everywhere yet; until then item %s is refused: %w", t.Status.Items[j].Name, item.Name, refusal)
	later.RetryAfter = patiencePause
	return later
}

// mayStill asks for the rights of an item that was deferred, now that its turn has come.
func (s session) mayStill(ctx context.Context, i int) error {
	if t := s.txn; t.Status.Phase != api.PhaseCommitting || t.Status.Items[i].DeferredBy == "" {
		return nil
	}
	denied, err := s.mayDo(ctx, []int{i}, true)
	if err != nil || len(denied) == 0 {
		return err
	}
	return denied[0].Err
}

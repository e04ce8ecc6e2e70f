package wiring

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// staleness asks on behalf of calls that take long.
type staleness struct {
	journal *Journal
	clock   clock.PassiveClock
	// lateness is after how long a call no longer takes for granted that nobody else has
	// gone on with the Transaction. A process that hung may have been replaced, and the
	// Transaction may have ended: nobody would remove what is made for it then.
	lateness time.Duration
}

// begin is called when a call begins, with the Transaction that it is about. What it
// gives is asked before the call makes something that the end of the Transaction has to
// remove. It reads the Transaction if that was not done, or the call begun, within the
// lateness, or anyway, and fails if it is not as the call knows it.
func (l staleness) begin(t *api.Transaction) func(ctx context.Context, anyway bool) error {
	turn := make(chan struct{}, 1) // Those who wait for it can be told to stop.
	heard := l.clock.Now()
	return func(ctx context.Context, anyway bool) error {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return fmt.Errorf("wait for another to read Transaction %s/%s: %w", t.Namespace, t.Name, ctx.Err())
		}
		asked := l.clock.Now()
		if !anyway && asked.Sub(heard) < l.lateness {
			return nil
		}
		if err := l.journal.Unwritten(ctx, t); err != nil {
			return err
		}
		heard = asked
		return nil
	}
}

// unlessOvertaken is asked before something of the Transaction is removed that another
// process may rely on: this one may have hung. It fails if another client has written the
// Transaction since it was read. Nobody relies on the leftovers of one that is gone.
func (l staleness) unlessOvertaken(t *api.Transaction) func(ctx context.Context, _ bool) error {
	return func(ctx context.Context, _ bool) error { return l.journal.NotOvertaken(ctx, t) }
}

func overtaken(t *api.Transaction) error {
	return errclass.New(errclass.Retryable, errclass.StaleVersion, "go on with", "Transaction "+t.Namespace+"/"+t.Name,
		"it has been written since this process read it")
}

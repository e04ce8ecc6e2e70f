package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
)

// sent is what has come of a change.
type sent struct {
	in   Intent
	made types.UID
	said []string
	err  error
}

// send makes changes. One that is refused when no earlier request for it can still land
// is known not to be in effect; otherwise the refusal proves nothing, and the target
// tells.
func (s *saga) send(ctx context.Context, these ...int) error {
	all := make([]sent, len(these))
	for n, i := range these {
		in, err := s.intent(i, api.ItemCommitting)
		if err != nil {
			return err
		}
		in.made = func(object types.UID) { all[n].made = object }
		in.warn = func(warnings []string) { all[n].said = warnings }
		all[n].in = in
		s.flight.happened(i, plan.Sent)
	}
	fanout.Do(len(all), len(all), func(n int) { all[n].err = s.Changes.Do(ctx, all[n].in) })
	for n := range all {
		s.sort(&all[n])
	}
	return s.answer(ctx, all)
}

// sort notes what is known of a change that was sent.
func (s *saga) sort(c *sent) {
	switch i := c.in.Index(); {
	case c.err == nil:
		s.unsure(i) // Should the record get lost, a refusal of another attempt proves nothing.
		told := s.flight.told(i)
		told.made, told.said = c.made, c.said
		s.isOver(i)
	case !isJournal(c.err) && !plan.Definite(c.err) && (errclass.ClassOf(c.err) == errclass.Unknown || errclass.Is(c.err, errclass.Terminating)):
		s.unsure(i)
	}
}

// answer does what follows from what has come of changes: it turns round if one was
// refused, and returns the first error that may heal otherwise.
func (s *saga) answer(ctx context.Context, all []sent) error {
	var pending error
	var refused []*sent
	for n := range all {
		switch err := all[n].err; {
		case isJournal(err):
			return err
		case plan.Definite(err):
			refused = append(refused, &all[n])
		case err != nil && pending == nil:
			pending = err
		}
	}
	if len(refused) == 0 {
		return pending
	}
	if first := refused[0]; !s.flight.known[first.in.Index()].NoEffect() {
		return s.refused(ctx, first.in, first.err)
	}
	return s.reject(ctx, refused)
}

// turns lets one at a time go on, as a mutex does. A request may be under way meanwhile:
// to wait for a turn is to wait for a channel, which the virtual time of the simulation
// knows, and not for a mutex, which it does not.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

// take waits for a turn, and returns what ends it.
func (t turns) take() (done func()) {
	t <- struct{}{}
	return func() { <-t }
}

package engine

import (
	"time"

	"janus.io/janus/engine/plan"
)

// A request that was sent before may still land. How long to wait for that is the settle time
// of the policy.

// settleTime is how much longer to wait for a request for item i to land or not, counted
// from when this process first asked for one of those that are open: another machine's
// clock proves nothing.
func (s *saga) settleTime(i int) time.Duration {
	since := s.memory.SettlingSince(i, func(j int) bool { return s.flight.MayLand(&s.txn.Status.Items[j], j) })
	return s.policy.SettleTime - s.clock.Now().Sub(since)
}

// unsure notes that a request for an item has taken effect, or may.
func (s *saga) unsure(i int) {
	s.flight.Happened(i, plan.Lost)
	s.memory.Settled(i)
}

// mayCreate is asked before the object of item i is created, or created again.
func (s *saga) mayCreate(i int) error {
	if s.flight.Known[i].NoEffect() || s.settleTime(i) <= 0 {
		return nil
	}
	return s.unsettled(i)
}

// unsettled is the wait for a request for item i to land or not.
func (s *saga) unsettled(i int) error {
	return plan.Unsettled(s.txn.Status.Items[i].Target.String())
}

// doubtTime is how much longer a creation may be under way.
func (s *saga) doubtTime() time.Duration { return s.memory.DoubtLeft(s.policy.SettleTime) }

// mayGo is asked before a Transaction goes for good. What would be made for it after
// that could not be found.
func (s *saga) mayGo() error {
	if s.doubtTime() <= 0 {
		return nil
	}
	return plan.Unsettled("Transaction " + s.txn.Namespace + "/" + s.txn.Name)
}

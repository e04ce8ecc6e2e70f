package engine

import (
	"time"

	"janus.io/janus/engine/plan"
)

// unsure notes that a request for an item has taken effect, or may.
func (s *saga) unsure(i int) {
	s.flight.Happened(i, plan.Lost)
	s.memory.Settled(i)
}

// settleTime is how much longer to wait for a request for item i to land or not, counted
// from when this process first asked for one of those that are open: another machine's
// clock proves nothing.
func (s *saga) settleTime(i int) time.Duration {
	since := s.memory.SettlingSince(i, func(j int) bool { return s.flight.MayLand(&s.txn.Status.Items[j], j) })
	return s.policy.SettleTime - s.clock.Now().Sub(since)
}

// pollTime is how long to wait before what holds the Transaction up is looked at again:
// an eighth of the time that it has waited already. Locks that it keeps meanwhile must
// not expire.
func (s *saga) pollTime() time.Duration {
	return max(pollInterval, min(s.memory.Waiting()/8, maxPollInterval, plan.LockTimeout(s.txn)/4))
}

// mayCreate is asked before the object of item i is created, or created again.
func (s *saga) mayCreate(i int) error {
	if s.flight.Known[i].NoEffect() || s.settleTime(i) <= 0 {
		return nil
	}
	return plan.Unsettled(plan.Describe(s.txn.Status.Items[i].Target))
}

// mayGo is asked before a Transaction goes for good. What would be made for it after
// that could not be found.
func (s *saga) mayGo() error {
	if s.doubtTime() <= 0 {
		return nil
	}
	return plan.Unsettled("Transaction " + s.txn.Namespace + "/" + s.txn.Name)
}

// doubtTime is how much longer a creation may be under way.
func (s *saga) doubtTime() time.Duration { return s.memory.DoubtLeft(s.policy.SettleTime) }

package engine

import (
	"maps"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/outcome"
)

// A request that its sender has given up on, or did not live to see answered, may
// still land. Most come too late to do harm: what they demand of the object is not
// so any more. A creation demands nothing but that the object does not exist. So
// one that may be under way is waited for before it is sent again, and what it may
// have left after the end is looked for.

// memory is what this process knows of a Transaction that its status does not tell.
type memory struct {
	// asked is when this process began to wait for a request for an item to land or not;
	// nil until there is one. Thousands of Transactions that have ended are remembered.
	asked map[int]time.Time
	// doubt is when a creation of a lock or a before-image may have been sent last whose
	// outcome is not known; zero if there was none.
	doubt time.Time
	// loose is set while locks or before-images may be there that no checkpoint of this
	// process covers.
	loose bool
	// flight is what is known of open intents, as long as nobody else writes the status.
	flight *flight
	// version is the resourceVersion that this process has last made.
	version string
	// checkpoints is how many of them this process knows of.
	checkpoints int64
	// undone are the items that this process has rolled back: if the record of one gets
	// lost, what others have written since is not taken for the change. Where another
	// process goes on with the Transaction, a Create is looked at again: only that can be
	// made once more by a request of its that is under way. It is nil until there is one.
	undone map[int]outcome.Undone
	// restored is when it last rolled an item back; zero if it did not.
	restored time.Time
	// waiting is since when it waits for what another client holds up; zero if it does not.
	waiting time.Time
	// looked is when it last checked whether what is waited for is ready; zero if it did
	// not.
	looked time.Time
	// spared is the generation of which this process has told others, by a checkpoint, that
	// nothing further is to be rolled back; zero if there is none.
	spared int64
	// begun is when this process last began a change, or was to; zero if it did not.
	begun time.Time
	// failures are the failed attempts that are not on record yet.
	failures int32
	// missed is when it was first found to be gone; zero if it was not.
	missed time.Time
	// txn is the Transaction as this process last knew it when it took something for it.
	txn kept
	// images is where before-images were last; a commit takes that off the status.
	images *api.RollbackRef
}

func remember(t *api.Transaction) *memory {
	return &memory{txn: keptOf(t), checkpoints: t.Status.Version}
}

// know changes what this process knows of the Transaction.
func (s *saga) know(change func(m *memory)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.memories[s.txn.UID]
	if !ok {
		m = remember(s.txn)
		s.memories[s.txn.UID] = m
	}
	change(m)
}

// meet recalls what this process knows of the Transaction. One that it meets half-way
// was in the hands of another, whose requests may be under way.
func (s *saga) meet() {
	if s.overtaken() {
		s.Locks.Distrust(s.txn)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.memories[s.txn.UID]
	if ok {
		m.missed = time.Time{}
	}
	switch phase := s.txn.Status.Phase; {
	case ok && m.flight != nil && m.checkpoints == s.txn.Status.Version:
		s.flight = m.flight
	case phase == "", phase == api.PhasePending, phase == api.PhasePlanned: // nothing was taken for it
	case ok && m.checkpoints != s.txn.Status.Version:
		// Another process has gone on with it, or this one took it for new by a stale answer.
		m.doubt, m.checkpoints, m.txn, m.flight = s.clock.Now(), s.txn.Status.Version, keptOf(s.txn), nil
		maps.DeleteFunc(m.undone, func(i int, _ outcome.Undone) bool { return plan.Creates(s.txn, i) })
	case ok:
	case phase.Terminal() && (s.known.has(s.txn.UID) || !s.EndedLately(s.txn.Status.CompletionTime) && s.txn.DeletionTimestamp == nil):
	default:
		m = remember(s.txn)
		m.doubt, m.images = s.clock.Now(), s.txn.Status.RollbackRef
		s.memories[s.txn.UID] = m
	}
}

// overtaken reports whether another client has written the Transaction since this process
// did.
func (s *saga) overtaken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.memories[s.txn.UID]
	return ok && m.version != "" && m.version != s.txn.ResourceVersion
}

// undone returns what this process has found out while it rolled item i back, if it has.
func (s *saga) undone(i int) (undone outcome.Undone, ok bool) {
	s.know(func(m *memory) { undone, ok = m.undone[i] })
	return undone, ok
}

// mine reports whether this process has written the Transaction as it is.
func (s *saga) mine() (yes bool) {
	s.know(func(m *memory) { yes = m.version == s.txn.ResourceVersion })
	return yes
}

// unsure notes that a request for an item has taken effect, or may.
func (s *saga) unsure(i int) {
	s.flight.happened(i, plan.Lost)
	s.know(func(m *memory) { delete(m.asked, i) })
}

// doubt notes that a creation of a lock or a before-image may be under way.
func (s *saga) doubt() {
	s.know(func(m *memory) { m.doubt, m.txn = s.clock.Now(), keptOf(s.txn) })
}

// settleTime is how much longer to wait for a request for item i to land or not, counted
// from when this process first asked for one of those that are open: another machine's
// clock proves nothing.
func (s *saga) settleTime(i int) (left time.Duration) {
	now := s.clock.Now()
	s.know(func(m *memory) {
		if since, ok := m.asked[i]; !ok || now.Before(since) {
			if m.asked == nil {
				m.asked = map[int]time.Time{}
			}
			m.asked[i] = now
			for j := range s.txn.Status.Items {
				if _, ok := m.asked[j]; !ok && s.mayLand(j) {
					m.asked[j] = now
				}
			}
		}
		left = s.policy.SettleTime - now.Sub(m.asked[i])
	})
	return left
}

// mayLand reports whether a request for item i may be under way, as far as this process
// knows, and none of its own.
func (s *saga) mayLand(i int) bool {
	state := s.txn.Status.Items[i].State
	return (state == api.ItemCommitting || state == api.ItemRollingBack) && !s.flight.known[i].NoEffect() && s.flight.known[i] != plan.Over
}

// pollTime is how long to wait before what holds the Transaction up is looked at again:
// an eighth of the time that it has waited already. Locks that it keeps meanwhile must
// not expire.
func (s *saga) pollTime() (wait time.Duration) {
	now := s.clock.Now()
	s.know(func(m *memory) {
		if m.waiting.IsZero() || now.Before(m.waiting) {
			m.waiting = now
		}
		wait = now.Sub(m.waiting) / 8
	})
	return max(pollInterval, min(wait, maxPollInterval, plan.LockTimeout(s.txn)/4))
}

// settled ends the wait for requests for item i.
func (s *saga) settled(i int) { s.know(func(m *memory) { delete(m.asked, i) }) }

// mayCreate is asked before the object of item i is created, or created again.
func (s *saga) mayCreate(i int) error {
	if s.flight.known[i].NoEffect() || s.settleTime(i) <= 0 {
		return nil
	}
	return plan.Unsettled(s.txn.Status.Items[i].Target.String())
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
func (s *saga) doubtTime() (left time.Duration) {
	now := s.clock.Now()
	s.know(func(m *memory) {
		if m.doubt.IsZero() {
			return
		}
		if now.Before(m.doubt) {
			m.doubt = now // The clock has been set back.
		}
		left = s.policy.SettleTime - now.Sub(m.doubt)
	})
	return left
}

package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/fault"
)

// A request that its sender has given up on, or did not live to see answered, may
// still land. Most come too late to do harm: what they demand of the object is not
// so any more. A creation demands nothing but that the object does not exist. So
// one that may be under way is waited for before it is sent again, and what it may
// have left after the end is looked for.

// memory is what this process knows of a Transaction that its status does not tell.
type memory struct {
	// asked is when this process began to wait for a request to land or not; zero if
	// it does not.
	asked time.Time
	// doubt is when a creation of a lock or a before-image may have been sent last whose
	// outcome is not known; zero if there was none.
	doubt time.Time
	// loose is set while locks or before-images may be there that no checkpoint of this
	// process covers.
	loose bool
	// sure is the item whose open intent this process has recorded, with no request
	// for it under way that has not been answered, as long as the Transaction has this
	// resourceVersion; -1 if there is none.
	sure    int
	version string
	// waiting is since when it waits for what somebody else holds up; zero if it does not.
	waiting time.Time
	// missed is when it was first found to be gone; zero if it was not.
	missed time.Time
	// txn is the Transaction as this process last knew it when it took something for it.
	txn *api.Transaction
	// images is where before-images were last; a commit takes that off the status.
	images *api.RollbackRef
}

// know changes what this process knows of the Transaction.
func (s *saga) know(change func(m *memory)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.memories[s.txn.UID]
	if !ok {
		m = &memory{sure: -1, txn: s.txn}
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
	case ok && m.version == s.txn.ResourceVersion:
		s.sure = m.sure
	case ok, phase == "", phase == api.PhasePending:
	case phase.Terminal() && (s.known.has(s.txn.UID) || !s.EndedLately(s.txn.Status.CompletionTime) && s.txn.DeletionTimestamp == nil):
	default:
		s.memories[s.txn.UID] = &memory{sure: -1, txn: s.txn, doubt: s.clock.Now(), images: s.txn.Status.RollbackRef}
	}
}

// overtaken reports whether somebody has written the Transaction since this process
// did.
func (s *saga) overtaken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.memories[s.txn.UID]
	return ok && m.version != "" && m.version != s.txn.ResourceVersion
}

// mine reports whether this process has written the Transaction as it is.
func (s *saga) mine() (yes bool) {
	s.know(func(m *memory) { yes = m.version == s.txn.ResourceVersion })
	return yes
}

// opened notes that this process has recorded an intent and has not acted on it.
func (s *saga) opened(before, after *api.TransactionStatus) {
	for i := range after.Items {
		open := after.Items[i].State == api.ItemCommitting || after.Items[i].State == api.ItemRollingBack
		if open && i < len(before.Items) && before.Items[i].State != after.Items[i].State {
			s.sure = i
			s.know(func(m *memory) { m.asked = time.Time{} })
		}
	}
}

// unsure notes that a request for the item in hand may be under way.
func (s *saga) unsure() {
	s.sure = -1
	s.know(func(m *memory) { m.sure, m.asked = -1, time.Time{} })
}

// doubt notes that a creation of a lock or a before-image may be under way.
func (s *saga) doubt() {
	s.know(func(m *memory) { m.doubt, m.txn = s.clock.Now(), s.txn })
}

// settling is the reason of the wait for a request to land or not.
const settling = "Settling"

// settleTime is how much longer to wait, counted from when this process first
// asked: another machine's clock proves nothing.
func (s *saga) settleTime() (left time.Duration) {
	now := s.clock.Now()
	s.know(func(m *memory) {
		if m.asked.IsZero() || now.Before(m.asked) {
			m.asked = now
		}
		left = s.policy.SettleTime - now.Sub(m.asked)
	})
	return left
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
	return max(pollInterval, min(wait, maxPollInterval, LockTimeout(s.txn)/4))
}

func (s *saga) settled() { s.know(func(m *memory) { m.asked = time.Time{} }) }

// unsettled is the wait for a request to land or not.
func unsettled(what string) error {
	return fault.New(fault.Retryable, settling, "settle", what, "waiting until a request sent before cannot take effect any more")
}

// mayCreate is asked before the object of item i is created, or created again.
func (s *saga) mayCreate(i int) error {
	if s.sure == i || s.settleTime() <= 0 {
		return nil
	}
	return unsettled(Describe(s.txn.Status.Items[i].Target))
}

// mayGo is asked before a Transaction goes for good. What would be made for it after
// that could not be found.
func (s *saga) mayGo() error {
	if s.doubtTime() <= 0 {
		return nil
	}
	return unsettled("Transaction " + s.txn.Namespace + "/" + s.txn.Name)
}

// doubtTime is how much longer a creation may be under way.
func (s *saga) doubtTime() (left time.Duration) {
	s.know(func(m *memory) {
		if !m.doubt.IsZero() {
			left = s.policy.SettleTime - s.clock.Since(m.doubt)
		}
	})
	return left
}

// lookBack lets go of what was made for a Transaction that has ended and was not
// there, or not known, when it did: by this process, which was late; by a request of
// its own that was under way; or by a process that has died since.
func (s *saga) lookBack(ctx context.Context, gone bool) Result {
	s.mu.Lock()
	m, ok := s.memories[s.txn.UID]
	s.mu.Unlock()
	if !ok {
		return Result{}
	}
	wait := s.doubtTime()
	if s.txn.DeletionTimestamp != nil && !gone {
		wait = 0 // What is left keeps it from going.
	}
	if m.loose || !m.doubt.IsZero() && wait <= 0 {
		named := s.txn.Status.RollbackRef != nil
		if !named && m.images != nil {
			s.txn = s.txn.DeepCopy()
			s.txn.Status.RollbackRef = m.images
		}
		if err := s.letGo(ctx, named && s.txn.DeletionTimestamp == nil && !gone); err != nil {
			return Result{Err: err}
		}
	}
	if wait > 0 {
		return Result{After: wait}
	}
	s.forget()
	return Result{}
}

// Vanished lets go of what this process has made for a Transaction of that name that is
// gone: it was late with it, and another process has let it go.
func (e *Engine) Vanished(ctx context.Context, name types.NamespacedName) Result {
	for _, t := range e.takenFor(name) {
		s := &saga{Engine: e, txn: t, fresh: -1, sure: -1, heard: e.clock.Now()}
		if wait := s.missTime(); wait > 0 {
			return Result{After: wait}
		}
		if result := s.lookBack(context.WithoutCancel(ctx), true); result != (Result{}) {
			return result
		}
	}
	return Result{}
}

// missTime is how much longer a Transaction must be found to be gone before that is
// believed: a server that is behind may not know of it.
func (s *saga) missTime() (left time.Duration) {
	s.know(func(m *memory) {
		if m.missed.IsZero() {
			m.missed = s.clock.Now()
		}
		left = s.policy.SettleTime - s.clock.Since(m.missed)
	})
	return left
}

// takenFor gives the Transactions of a name for which this process may have made
// something.
func (e *Engine) takenFor(name types.NamespacedName) []*api.Transaction {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*api.Transaction
	for _, m := range e.memories {
		if m.txn.Namespace == name.Namespace && m.txn.Name == name.Name {
			out = append(out, m.txn)
		}
	}
	return out
}

// Distrust drops what this process knows of a Transaction of which a step was broken
// off: it is met again as if another process had had it.
func (e *Engine) Distrust(t *api.Transaction) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.memories, t.UID)
}

// Tidy is for a process that is about to end, and whose last run of a Transaction was
// overtaken by another process. It does what the next run would: it lets go of what that
// process may have overlooked, if the Transaction has ended. If not, whoever ends it
// lets go of that too.
func (e *Engine) Tidy(ctx context.Context, t *api.Transaction) error {
	if !t.Status.Phase.Terminal() {
		return nil
	}
	return (&saga{Engine: e, txn: t, fresh: -1, sure: -1, heard: e.clock.Now()}).lookBack(ctx, false).Err
}

// aftermath is how long after the end of a Transaction it is thought possible that a
// process which was late with it has died and left something.
const aftermath = 10 * time.Minute

// EndedLately reports whether a Transaction that was completed then may have something
// left of it. It costs a few requests to look.
func (e *Engine) EndedLately(completion *metav1.Time) bool {
	if completion == nil {
		return false
	}
	ago := e.clock.Since(completion.Time)
	return -aftermath < ago && ago < aftermath
}

// forget drops what is known of a Transaction of which nothing is left.
func (s *saga) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.memories, s.txn.UID)
	s.known.add(s.txn.UID, s.clock.Now())
}

// clearedUp are the Transactions of which nothing is left since a short while ago.
type clearedUp struct {
	since map[types.UID]time.Time
	prune int // the size at which those that count no more are dropped
}

func (k *clearedUp) has(uid types.UID) bool {
	_, ok := k.since[uid]
	return ok
}

func (k *clearedUp) add(uid types.UID, now time.Time) {
	if len(k.since) >= k.prune {
		for old, then := range k.since {
			if now.Sub(then) > 2*aftermath {
				delete(k.since, old)
			}
		}
		k.prune = max(64, 2*len(k.since))
	}
	k.since[uid] = now
}

package oracle

import (
	"math"
	"slices"
	"strings"
	"time"

	api "janus.io/janus/api/v1alpha1"
)

// slack is what times may differ by that are written down by the microsecond.
const slack = time.Millisecond

// judgeLocks: a lock goes from one holder to another when it is free, when its time is over,
// or when the Transaction that holds it is; then the Lease counts it. Readers that share one join
// and leave, each for itself, and none joins before a writer that waits.
func (c *trial) judgeLocks() {
	for ref, o := range c.objects {
		if !isLock(ref) {
			continue
		}
		for _, v := range o.versions {
			if v.Deleted || v.before == nil || v.by == nil || v.before.by == nil {
				continue
			}
			c.judgeTakeover(v)
			c.judgeJoining(v)
		}
	}
}

func (c *trial) judgeTakeover(v *version) {
	was, is := lease(v.before), lease(v)
	if was.holder == "" || is.holder == "" || was.holder == is.holder {
		return
	}
	for _, reader := range was.readers {
		c.judgeTakenFrom(reader, is, v)
	}
	if is.transitions != was.transitions+1 {
		c.breach(LockExclusion, "%s@%d went from %s to %s, and leaseTransitions from %d to %d", v.Ref, v.Revision, was.holder, is.holder, was.transitions, is.transitions)
	}
	if was.readers == nil {
		c.judgeTakenFrom(was, is, v)
	}
}

// judgeTakenFrom: who had a lock, alone or with others, has had its time when another takes it.
func (c *trial) judgeTakenFrom(was, is held, v *version) {
	if c.ClocksTurned || was.holder == is.holder || was.renewed.IsZero() || is.renewed.IsZero() || c.seenOver(was, v) {
		return
	}
	if over := was.renewed.Add(was.duration); is.renewed.Add(slack).Before(over) {
		c.breach(LockExclusion, "%s@%d went from %s to %s at %s, and was held until %s", v.Ref, v.Revision, was.holder, is.holder,
			is.renewed.Format(time.RFC3339Nano), over.Format(time.RFC3339Nano))
	}
}

// seenOver reports whether the Transaction that held a lock had ended, or was gone, at some time
// between the version of the Lease that says so and the one by which another took it over. It may
// have been taken up again just then: anyone who takes the lock over has looked before.
func (c *trial) seenOver(was held, v *version) bool {
	for _, r := range c.runs {
		if !was.heldBy(r) {
			continue
		}
		if r.gone != nil && r.gone.Revision < v.Revision {
			return true
		}
		for i, s := range r.states {
			until := int64(math.MaxInt64)
			if i+1 < len(r.states) {
				until = r.states[i+1].Revision
			}
			if s.isOver() && s.Revision < v.Revision && until > v.before.Revision {
				return true
			}
		}
	}
	return false
}

// isOver reports whether a Transaction has ended and has nothing left to release.
func (s *state) isOver() bool { return api.Phase(s.phase).Terminal() && !s.finalizer }

// held is what a Lease says.
type held struct {
	holder      string
	renewed     time.Time
	duration    time.Duration
	transitions int64
	// readers are who shares it, not nil for a Lease that can be shared, and next who waits to have
	// it alone.
	readers []held
	next    *held
	// over tells one writing of a reader from another.
	over string
}

func lease(v *version) held {
	spec, _ := v.Object.Object["spec"].(map[string]any)
	out := held{
		holder:   str(spec, "holderIdentity"),
		duration: time.Duration(number(spec["leaseDurationSeconds"])) * time.Second, transitions: number(spec["leaseTransitions"]),
	}
	out.renewed, _ = time.Parse(time.RFC3339Nano, str(spec, "renewTime"))
	out.readShared(v)
	return out
}

// heldBy reports whether a Transaction has a lock, alone or with others.
func (h held) heldBy(r *run) bool {
	return h.heldAloneBy(r) || slices.ContainsFunc(h.readers, func(reader held) bool { return reader.heldAloneBy(r) })
}

// heldAloneBy reports whether a holder's identity is that of a Transaction.
func (h held) heldAloneBy(r *run) bool {
	return h.holder != "" && h.holder[strings.LastIndexByte(h.holder, '/')+1:] == r.uid()
}

func (r *run) uid() string {
	if r.UID != "" || len(r.states) == 0 {
		return string(r.UID)
	}
	return r.states[0].uid
}

// judgeHeld: while a change lands, its Transaction has the lock of the target.
func (c *trial) judgeHeld(r *run) {
	for _, w := range r.writes {
		if w.role != do || w.made == nil || w.item < 0 {
			continue
		}
		s := r.before(w.made.Revision)
		if s == nil || w.item >= len(s.items) || s.items[w.item].lease == "" || s.deleting || r.gone != nil && r.gone.Revision < w.made.Revision {
			continue // of a Transaction that is being deleted the locks are let go first
		}
		_, name, _ := strings.Cut(s.items[w.item].lease, "/")
		if holder, ok := c.holds(r, name, r.reached(w.item, api.ItemCommitting), w.made.Revision); !ok {
			c.breach(LockExclusion, "%s: %s@%d was made by %s while its lock %s was held by %s", r.named(w.item), w.ref, w.made.Revision, w.At, s.items[w.item].lease, holder)
		}
	}
}

// holds reports whether a Transaction has a lock at a revision, in one of the places
// where it can be. Where others have meddled with it, or it was not seen, nobody can
// tell; nor does it count that it was taken over after the intent was recorded. A change
// that was under way then lands all the same, and its precondition tells whether it may.
// But anyone who has recorded an intent looks after its locks before it goes on.
func (c *trial) holds(r *run, name string, intent *state, revision int64) (string, bool) {
	seen, holder := false, "nobody"
	for ref, o := range c.objects {
		if ref.Name != name || ref.Resource != leases {
			continue
		}
		seen = true
		if v := o.at(revision); v != nil {
			now := lease(v)
			if now.heldAloneBy(r) {
				return "", true
			}
			holder = now.holder
		}
		for _, v := range o.versions {
			if v.Revision >= revision {
				break
			}
			taken := v.before != nil && !v.Deleted && lease(v.before).heldAloneBy(r) && !lease(v).heldAloneBy(r)
			if v.by == nil || taken && (intent == nil || v.Revision > intent.Revision) {
				return "", true
			}
		}
	}
	return holder, !seen
}

// leaseMeddled reports whether another client than Janus has written a Lease, or it was not seen.
func (c *trial) leaseMeddled(named string) bool {
	namespace, name, _ := strings.Cut(named, "/")
	o := c.objects[Ref{Resource: leases, Namespace: namespace, Name: name}]
	return o == nil || slices.ContainsFunc(o.versions, func(v *version) bool { return v.by == nil })
}

// locked reports whether a Transaction has a Lease, as its status names it, at a revision.
func (c *trial) locked(r *run, named string, revision int64) bool {
	namespace, name, _ := strings.Cut(named, "/")
	o := c.objects[Ref{Resource: leases, Namespace: namespace, Name: name}]
	return o != nil && o.at(revision) != nil && lease(o.at(revision)).heldBy(r)
}

// judgePlaces: a lock is where everybody looks for it, in the namespace of its target
// or in that of Janus, and not where the Transaction is.
func (c *trial) judgePlaces(r *run) {
	s := r.end()
	if s == nil || c.Home == "" {
		return
	}
	for i := range min(len(s.items), len(r.Items)) {
		place, _, _ := strings.Cut(s.items[i].lease, "/")
		if place != "" && place != r.Items[i].Namespace && place != c.Home {
			c.breach(LockExclusion, "%s: its lock is %s, where no Transaction of another namespace looks for it", r.named(i), s.items[i].lease)
		}
	}
}

// judgeReleased: nobody takes the lock of a Transaction away that is at work.
func (c *trial) judgeReleased(r *run) {
	for _, w := range c.lockWrites() {
		c.judgeTakenOut(r, w)
		if w.Method != "DELETE" || w.made == nil || !isLock(w.ref) || w.made.before == nil || !lease(w.made.before).heldBy(r) {
			continue
		}
		if s := r.before(w.made.Revision); s != nil && r.atWork(s) && r.gone == nil && !c.moved(r, w) {
			c.breach(LockExclusion, "%s: its lock %s@%d was deleted by %s while it was %s (@%d) with %s", r, w.ref, w.made.Revision, w.At, s.phase, s.Revision, s.states())
		}
	}
}

// moved reports whether a lock that was deleted in one place is held in the other.
func (c *trial) moved(r *run, w *write) bool {
	for ref, o := range c.objects {
		if ref != w.ref && ref.Resource == leases && ref.Name == w.ref.Name {
			if v := o.at(w.made.Revision); v != nil && lease(v).heldBy(r) {
				return true
			}
		}
	}
	return false
}

// atWork reports whether a Transaction has changes to make or to roll back.
func (r *run) atWork(s *state) bool {
	switch api.Phase(s.phase) {
	case api.PhaseCommitting:
		return !s.deleting && !r.finished(s)
	case api.PhaseRollingBack:
		return slices.ContainsFunc(s.items, func(i item) bool {
			return i.in(api.ItemCommitting, api.ItemCommitted, api.ItemRollingBack)
		})
	default:
		return false
	}
}

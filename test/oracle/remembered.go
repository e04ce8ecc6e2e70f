package oracle

import (
	"slices"
	"strconv"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// revisions is the resource of what remembers committed Transactions.
const revisions = "controllerrevisions.apps"

const (
	revisionPrefix = "janus-revision-"
	counter        = "janus-revisions"
)

// judgeRemembered: a Transaction is remembered once, under the number that was on record
// before, and only if all of its changes are in effect and that was asked for. Where a failure does not
// stop the others, those that are not in effect are known.
func (c *trial) judgeRemembered(r *run) {
	for _, v := range c.remembering(r) {
		s := r.before(v.Revision)
		switch {
		case r.historyLimit() == 0:
			c.breach(NothingLeft, "%s: it is not to be remembered, and %s@%d was made for it", r, v.Ref, v.Revision)
		case s == nil || !r.told(s) && s.phase != string(api.PhaseCommitted):
			c.breach(Atomicity, "%s: %s@%d remembers it, and not all of its changes are in effect", r, v.Ref, v.Revision)
		case !r.wasNumbered(v):
			c.breach(ExactlyOnce, "%s: %s@%d remembers it, and its number is %d (@%d)", r, v.Ref, v.Revision, s.revision, s.Revision)
		}
	}
	c.judgeHistory(r)
}

// told reports whether a state tells of all items whether they are in effect, and of some that they are.
func (r *run) told(s *state) bool {
	if !r.continues() {
		return s.allIn(api.ItemCommitted, api.ItemSkipped)
	}
	return s.allIn(api.ItemCommitted, api.ItemSkipped, api.ItemRejected) &&
		(slices.ContainsFunc(s.items, func(i item) bool { return i.in(api.ItemCommitted) }) || !slices.ContainsFunc(s.items, func(i item) bool { return i.failed }))
}

// wasNumbered reports whether the number of a revision was on record before it was made:
// the latest, or an earlier one if the request for that landed late.
func (r *run) wasNumbered(v *version) bool {
	return slices.ContainsFunc(r.states, func(s *state) bool {
		return s.Revision < v.Revision && v.Ref.Name == revisionPrefix+strconv.FormatInt(s.revision, 10)
	})
}

// judgeHistory: a Transaction that says that it is remembered is, by one revision that it
// shares with no other, until Janus or another client deletes that.
func (c *trial) judgeHistory(r *run) {
	s := r.end()
	if !r.endedInEffect() || s.digest == "" {
		return
	}
	made := c.remembering(r)
	unsure := slices.ContainsFunc(s.items, func(i item) bool {
		return i.reason == "HistoryIncomplete" || strings.Contains(i.message, "the history is not as it should be")
	})
	if len(made) == 0 && !unsure {
		c.breach(Atomicity, "%s: it says that it is remembered as %d (@%d), and no revision was made", r, s.revision, s.Revision)
	}
}

// judgeNumbers: no two Transactions of a namespace are ever given the same number, whatever becomes
// of them, and one that began when another had its number has a higher one.
func (c *trial) judgeNumbers(r *run) {
	for _, other := range c.runs {
		if other == r || other.tampered || other.Namespace != r.Namespace {
			continue
		}
		for given, s := range r.numbers() {
			for theirs := range other.numbers() {
				switch {
				case theirs == given:
					c.breach(ExactlyOnce, "%s and %s were both given the number %d", r, other, given)
				case s.Revision < other.states[0].Revision && theirs < given:
					c.breach(Order, "%s was given the number %d (@%d) before %s began, which was given %d", r, given, s.Revision, other, theirs)
				}
			}
		}
	}
}

// numbers are those that a Transaction has had, by the first state in which it had them.
func (r *run) numbers() map[int64]*state {
	out := map[int64]*state{}
	for _, s := range r.states {
		if s.revision > 0 && out[s.revision] == nil {
			out[s.revision] = s
		}
	}
	return out
}

// remembering lists the revisions that Janus has made for a Transaction, as they were
// made.
func (c *trial) remembering(r *run) (out []*version) {
	for ref, o := range c.objects {
		if !isRevision(ref) || ref.Namespace != r.Namespace {
			continue
		}
		for _, v := range o.versions {
			if v.before == nil && v.by != nil && !v.Deleted && ownedBy(v, r) {
				out = append(out, v)
			}
		}
	}
	return out
}

// forgotten reports whether Janus has deleted the revision of a Transaction: its
// before-images are to go with it.
func (c *trial) forgotten(r *run, s *state) bool {
	o := c.objects[Ref{Resource: revisions, Namespace: r.Namespace, Name: revisionPrefix + strconv.FormatInt(s.revision, 10)}]
	if o == nil || o.last() != nil {
		return false
	}
	last := o.versions[len(o.versions)-1]
	return last.by != nil && ownedBy(last, r)
}

// isRevision reports whether an object has the name of one that remembers a Transaction, or that
// has the last number.
func isRevision(ref Ref) bool {
	return ref.Resource == revisions && (strings.HasPrefix(ref.Name, revisionPrefix) || ref.Name == counter)
}

func (r *run) historyLimit() int32 {
	if r.Spec.RevisionHistoryLimit == nil {
		return 0
	}
	return *r.Spec.RevisionHistoryLimit
}

// ownedBy reports whether a Transaction owns an object.
func ownedBy(v *version, r *run) bool {
	for _, e := range list(v.Object.Object, "metadata", "ownerReferences") {
		if owner, _ := e.(map[string]any); str(owner, "uid") == r.uid() {
			return true
		}
	}
	return false
}

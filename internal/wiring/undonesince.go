package wiring

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// findSince finds all that has committed since a revision, the newest first. It is told from the
// Transactions: others can make revisions, but not write the status of a Transaction. Of one that
// is gone nothing is known.
func (h *History) findSince(ctx context.Context, t *api.Transaction, number int64) (api.Undoing, error) {
	s := newSince(t, number)
	// What one list lacks is not believed to be gone.
	for range 2 {
		if err := h.journal.Each(ctx, t.Namespace, s.note); err != nil {
			return api.Undoing{}, err
		}
	}
	found, err := s.found()
	if err != nil {
		return api.Undoing{}, err
	}
	for _, one := range found {
		of, _, digest, err := h.read(ctx, t.Namespace, one.Revision)
		var own *errclass.Error
		switch {
		case errclass.Is(err, errclass.NotRemembered) && errors.As(err, &own):
			return api.Undoing{}, s.fail(errclass.NotRemembered, "the revision of Transaction %s (number %d): %w", one.Name, one.Revision, own.Err).
				WithHint("all that have committed since must be remembered; undo to a later revision")
		case err != nil:
			return api.Undoing{}, err
		case of.Transaction.UID != one.UID || digest != one.Digest:
			return api.Undoing{}, h.forged(t.Namespace, one.Revision)
		}
	}
	return api.Undoing{UndoneRevision: found[0], Earlier: found[1:]}, nil
}

// undoneDigest stands for what an undo has undone.
func undoneDigest(u *api.Undoing) string {
	if len(u.Earlier) == 0 {
		return u.Digest
	}
	sum := sha256.New()
	for _, one := range u.All() {
		sum.Write([]byte(one.Digest + "\n"))
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// since sorts out, of the Transactions of a namespace, what has changed something since a revision.
type since struct {
	undo   *api.Transaction
	number int64
	known  map[types.UID]bool

	committed []api.UndoneRevision
	// inTheWay are those because of which nothing is undone, and why.
	inTheWay []obstacle
	// unnumbered are those that have changed something without a number, and when they ended.
	unnumbered []unnumbered
	// from is when the last Transaction up to the revision ended, as far as they are there.
	from metav1.Time
}

func newSince(undo *api.Transaction, number int64) *since {
	return &since{undo: undo, number: number, known: map[types.UID]bool{}}
}

type obstacle struct {
	number    int64
	name, why string
}

type unnumbered struct {
	name  string
	ended *metav1.Time
}

const (
	notEnded      = "has not ended"
	notRemembered = "is not remembered"
	inPart        = "has left changes in effect, though it has failed"
)

// note enters one Transaction, as it was in the first list that has it. One that has no number has
// not held its locks, or is not to be remembered.
func (s *since) note(t *api.Transaction) {
	if s.known[t.UID] {
		return
	}
	s.known[t.UID] = true
	status := &t.Status
	switch {
	case t.UID == s.undo.UID || status.Phase.Terminal() && !inEffect(t):
	case status.Revision == 0 && !status.Phase.Terminal() && !begun(t):
	case status.Revision > s.number && !status.Phase.Terminal(), status.Revision == 0 && !status.Phase.Terminal():
		s.inTheWay = append(s.inTheWay, obstacle{status.Revision, t.Name, notEnded})
	case status.Revision == 0:
		s.unnumbered = append(s.unnumbered, unnumbered{t.Name, status.CompletionTime})
	case status.Revision <= s.number:
		if s.from.Before(status.CompletionTime) {
			s.from = *status.CompletionTime
		}
	case status.Phase == api.PhaseFailed && (status.RevisionDigest == "" || !plan.EndedInEffect(status)):
		s.inTheWay = append(s.inTheWay, obstacle{status.Revision, t.Name, inPart})
	case status.RevisionDigest == "":
		s.inTheWay = append(s.inTheWay, obstacle{status.Revision, t.Name, notRemembered})
	default:
		s.committed = append(s.committed, api.UndoneRevision{Name: t.Name, UID: t.UID, Revision: status.Revision, Digest: status.RevisionDigest})
	}
}

// begun reports whether a Transaction may have sent a change.
func begun(t *api.Transaction) bool {
	return t.Status.Phase != "" && t.Status.Phase != api.PhasePending && t.Status.Phase != api.PhasePreparing && t.Status.Phase != api.PhasePrepared
}

// inEffect reports whether a Transaction that has ended has written something that is in effect, or
// may be.
func inEffect(t *api.Transaction) bool {
	return slices.ContainsFunc(t.Status.Items, func(i api.Item) bool {
		return i.Changes() && !i.Unchanged && (i.State == api.ItemCommitted || i.State == api.ItemUnresolved || i.State == api.ItemCommitting || i.State == api.ItemRollingBack)
	})
}

// found returns what is to be undone, the newest first.
func (s *since) found() ([]api.UndoneRevision, error) {
	slices.SortFunc(s.committed, func(a, b api.UndoneRevision) int { return int(min(max(b.Revision-a.Revision, -1), 1)) })
	for _, one := range s.unnumbered {
		// Times are by the second: what ended in the same one may have come later.
		if s.from.IsZero() || one.ended == nil || !one.ended.Before(&s.from) {
			s.inTheWay = append(s.inTheWay, obstacle{0, one.name, notRemembered})
		}
	}
	switch {
	case len(s.inTheWay) > 0:
		return nil, s.fail(errclass.NotRemembered, "%s", s.describeObstacles()).
			WithHint("wait for what has not ended; undo the others by hand, and delete them, before you create the undo again")
	case len(s.committed) == 0:
		return nil, s.fail(errclass.NotRemembered, "nothing has committed since that has changed something").WithHint("kubectl janus history lists what can be undone")
	case len(s.committed) > api.MaxUndone:
		return nil, s.fail(errclass.TooLarge, "%d Transactions have committed since, and at most %d can be undone at once", len(s.committed), api.MaxUndone).
			WithHint("undo to a revision in between first")
	}
	return s.committed, nil
}

func (s *since) fail(reason, format string, args ...any) *errclass.Error {
	return errclass.New(errclass.Terminal, reason, "undo what has come since revision", fmt.Sprintf("%d of namespace %s", s.number, s.undo.Namespace), format, args...)
}

// describeObstacles names what stands in the way, the newest first.
func (s *since) describeObstacles() string {
	slices.SortFunc(s.inTheWay, func(a, b obstacle) int {
		if a.number != b.number {
			return int(min(max(b.number-a.number, -1), 1))
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for n, one := range s.inTheWay {
		if n == 5 {
			out = append(out, fmt.Sprintf("and %d more", len(s.inTheWay)-n))
			break
		}
		text := "Transaction " + one.name
		if one.number > 0 {
			text += fmt.Sprintf(" (number %d)", one.number)
		}
		out = append(out, text+" "+one.why)
	}
	return strings.Join(out, "; ")
}

package engine

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// The pre-flight tries every change without effect before anything is taken for the
// Transaction: no lock is held meanwhile, and all that is wrong is reported at once.

// reasonSeveral is the reason of a Transaction whose problems have different ones.
const reasonSeveral = "ValidationFailed"

// validate accepts the spec: from here on the generation is pinned.
func (s *saga) validate(ctx context.Context) error {
	if s.txn.Spec.UndoOf != nil && s.txn.Status.Undoing == nil {
		return s.find(ctx)
	}
	found, err := s.Planner.Validate(ctx, s.txn)
	switch {
	case definite(err):
		return s.fail(ctx, causeOf(err))
	case err != nil:
		return err
	case len(found.Problems) > 0:
		return s.refuseAll(ctx, found)
	case s.txn.Spec.DryRun:
		return s.end(ctx, false, func(status *api.TransactionStatus) error {
			s.pass(status, found)
			return movePhase(status, api.PhasePlanned)
		})
	}
	return s.checkpoint(ctx, func(status *api.TransactionStatus) error {
		s.pass(status, found)
		return movePhase(status, api.PhasePreparing)
	})
}

// pass records what was tried, and with what result.
func (s *saga) pass(status *api.TransactionStatus, found Preflight) {
	status.Items = found.Items
	s.accept(status)
	setCondition(status, s.txn.Generation, s.clock.Now(), condition{api.ConditionValidated, yes, reasonPassed, tried(found)})
}

// refuseAll ends a Transaction that the pre-flight found something wrong with. Nothing
// has been taken for it but the finalizer.
func (s *saga) refuseAll(ctx context.Context, found Preflight) error {
	return s.end(ctx, false, func(status *api.TransactionStatus) error {
		status.Items = found.Items
		complain(status.Items, found.Problems)
		s.accept(status)
		setCause(status, s.txn.Generation, s.clock.Now(), sumUp(status.Items, found.Problems))
		status.FailedItem = firstWrong(status.Items, found.Problems)
		return movePhase(status, api.PhaseFailed)
	})
}

// complain tells each item what is wrong with it, as far as its share goes.
func complain(items []api.Item, problems []Problem) {
	said := map[int][]string{}
	for _, p := range problems {
		if item := &items[p.Item]; item.Reason == "" {
			item.Reason = errclass.ReasonOf(p.Err)
		}
		said[p.Item] = append(said[p.Item], p.Err.Error())
	}
	share := max(ShareOf(len(items)), 200)
	for i, texts := range said {
		items[i].Message = errclass.Cut(errclass.Printable(strings.Join(texts, "; ")), share)
	}
}

// sumUp makes one cause of all problems: their reason if they have the same, and a
// message that counts and names them. What may heal counts only beside what will not.
func sumUp(items []api.Item, problems []Problem) Cause {
	reason := ""
	var texts, names []string
	seen := map[int]bool{}
	for _, p := range problems {
		switch own := errclass.ReasonOf(p.Err); {
		case !definite(p.Err):
		case reason == "":
			reason = own
		case reason != own:
			reason = reasonSeveral
		}
		if !seen[p.Item] {
			names = append(names, items[p.Item].Name)
		}
		seen[p.Item] = true
		texts = append(texts, "item "+items[p.Item].Name+": "+p.Err.Error())
	}
	message := texts[0]
	if len(problems) > 1 {
		message = fmt.Sprintf("%d problems with %d of %d changes (%s): %s", len(problems), len(names), len(items), enumerate(names), strings.Join(texts, "; "))
	}
	return Cause{Reason: reason, Message: errclass.Printable(message)}
}

// firstWrong names the first item with a problem that will not heal.
func firstWrong(items []api.Item, problems []Problem) string {
	for _, p := range problems {
		if definite(p.Err) {
			return items[p.Item].Name
		}
	}
	return ""
}

// enumerate lists names, as many as a message has room for.
func enumerate(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Later tells, of each item, whether its change can be tried only when its turn comes: an
// earlier one changes the same object or may be the reason why it is refused now, or it is
// not known before whether it is wanted.
func Later(t *api.Transaction) []bool {
	out := make([]bool, len(t.Status.Items))
	for i := range out {
		out[i] = true
	}
	for _, i := range early(t) {
		out[i] = false
	}
	return out
}

// tried says that what could be tried was accepted, and what could not.
func tried(found Preflight) string {
	if len(found.Deferred) == 0 {
		return "every change was tried without effect, and accepted"
	}
	var texts []string
	for _, d := range found.Deferred {
		texts = append(texts, fmt.Sprintf("item %s (%s)", found.Items[d.Item].Name, d.Why))
	}
	return errclass.Printable(fmt.Sprintf("%d of %d changes were tried without effect, and accepted; deferred: %s",
		len(found.Items)-len(texts), len(found.Items), strings.Join(texts, "; ")))
}

// plannedConditions are those of a Transaction that was to be tried only.
func plannedConditions(status *api.TransactionStatus) []condition {
	phase := string(status.Phase)
	done := "planned; " + messageNothingDone + ", because spec.dryRun is set"
	if c := meta.FindStatusCondition(status.Conditions, api.ConditionValidated); c != nil {
		done += "; " + c.Message
	}
	done = errclass.Printable(done)
	return []condition{
		{api.ConditionLocked, no, reasonNotNeeded, done},
		{api.ConditionSucceeded, yes, phase, done},
		{api.ConditionReady, yes, phase, done},
		{api.ConditionReconciling, no, reasonFinished, done},
		{api.ConditionStalled, no, reasonFinished, done},
		{api.ConditionRolledBack, no, reasonNotNeeded, done},
	}
}

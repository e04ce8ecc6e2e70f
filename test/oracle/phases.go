package oracle

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// MaxRecoveries is how often a failed rollback may be taken up again.
const MaxRecoveries = 3

// The legal moves, written down apart from those of the engine.
var (
	phaseMoves = map[api.Phase][]api.Phase{
		"":                   {api.PhasePending, api.PhasePreparing, api.PhasePlanned, api.PhaseFailed},
		api.PhasePending:     {api.PhasePreparing, api.PhasePlanned, api.PhaseFailed},
		api.PhasePreparing:   {api.PhasePrepared, api.PhaseCommitting, api.PhasePending, api.PhaseFailed},
		api.PhasePrepared:    {api.PhaseCommitting, api.PhaseFailed},
		api.PhaseCommitting:  {api.PhaseCommitted, api.PhaseRollingBack},
		api.PhaseRollingBack: {api.PhaseRolledBack, api.PhaseFailed},
		api.PhaseFailed:      {api.PhaseRollingBack},
	}
	itemMoves = map[api.ItemState][]api.ItemState{
		// An item that is prepared between two others is opened in the same checkpoint.
		api.ItemPending:     {api.ItemPrepared, api.ItemCommitting, api.ItemSkipped},
		api.ItemPrepared:    {api.ItemCommitting, api.ItemSkipped},
		api.ItemCommitting:  {api.ItemCommitted, api.ItemRejected, api.ItemUnresolved},
		api.ItemCommitted:   {api.ItemRollingBack, api.ItemUnresolved},
		api.ItemRollingBack: {api.ItemRolledBack, api.ItemUnresolved},
		api.ItemUnresolved:  {api.ItemRollingBack},
	}
	// endings are the states that items can have in a final phase.
	endings = map[api.Phase][]api.ItemState{
		api.PhaseCommitted:  {api.ItemCommitted, api.ItemSkipped},
		api.PhaseRolledBack: {api.ItemRolledBack, api.ItemRejected, api.ItemPrepared, api.ItemPending, api.ItemSkipped},
		api.PhasePlanned:    {api.ItemPending, api.ItemSkipped},
		api.PhaseFailed:     {api.ItemRolledBack, api.ItemRejected, api.ItemPrepared, api.ItemPending, api.ItemSkipped, api.ItemUnresolved},
	}
)

// judgePhases: a Transaction and its items go from one state to the next and never
// back, and its version counts the checkpoints. What another client has written into
// the status is not judged.
func (c *trial) judgePhases(r *run) {
	var was *state
	for _, is := range r.states {
		if was != nil && is.by != nil {
			c.judgeMoves(r, was, is)
		}
		if is.by != nil {
			c.judgeConsistent(r, is)
		}
		was = is
	}
}

func (c *trial) judgeMoves(r *run, was, is *state) {
	step := 0
	if is.by.Subresource == "status" {
		step = 1
	}
	if is.count != was.count+int64(step) {
		c.breach(Phases, "%s: status.version went from %d (@%d) to %d (@%d by %s)", r, was.count, was.Revision, is.count, is.Revision, is.by.At)
	}
	inPart := r.continues() && was.phase == string(api.PhaseCommitting) && is.phase == string(api.PhaseFailed)
	if was.phase != is.phase && !inPart && !slices.Contains(phaseMoves[api.Phase(was.phase)], api.Phase(is.phase)) {
		c.breach(Phases, "%s went from %q (@%d) to %q (@%d by %s)", r, was.phase, was.Revision, is.phase, is.Revision, is.by.At)
	}
	if was.phase == string(api.PhasePreparing) && is.phase == string(api.PhasePending) && (was.approval.plans == 0 || was.approval.digest != "") {
		c.breach(Phases, "%s went back to Pending (@%d by %s), and its approval %+v counted (@%d)", r, is.Revision, is.by.At, was.approval, was.Revision)
	}
	recovered := int64(0)
	again := was.phase == string(api.PhaseFailed) && is.phase == string(api.PhaseRollingBack)
	if again && is.asked == was.asked {
		recovered = 1
	}
	if is.asked != was.asked && (!again || is.asked != annotation(is, api.RecoverAnnotation)) {
		c.breach(Phases, "%s: status.handledRecovery went from %q (@%d) to %q (@%d by %s)", r, was.asked, was.Revision, is.asked, is.Revision, is.by.At)
	}
	if is.recoveries != was.recoveries+recovered || is.recoveries > MaxRecoveries {
		c.breach(Phases, "%s: status.recoveries went from %d (@%d) to %d (@%d by %s)", r, was.recoveries, was.Revision, is.recoveries, is.Revision, is.by.At)
	}
	if len(was.items) == 0 {
		return
	}
	if len(is.items) != len(was.items) {
		c.breach(Phases, "%s: it had %d items (@%d) and has %d (@%d by %s)", r, len(was.items), was.Revision, len(is.items), is.Revision, is.by.At)
		return
	}
	for i := range is.items {
		from, to := api.ItemState(was.items[i].state), api.ItemState(is.items[i].state)
		settling := was.items[i].unsettled && from == api.ItemUnresolved && to == api.ItemCommitting
		// What was about to be changed and is not to be any more: nothing was sent for it.
		withdrawn := from == api.ItemCommitting && to == api.ItemPrepared && was.phase == string(api.PhaseCommitting) && is.phase == string(api.PhaseRollingBack) ||
			r.continues() && from == api.ItemCommitting && (to == api.ItemPrepared || to == api.ItemSkipped) && was.phase == string(api.PhaseCommitting)
		// The same of what was about to be rolled back, when the rollback is suspended.
		spared := from == api.ItemRollingBack && to == api.ItemCommitted && !was.suspended && is.suspended
		// Nothing is sent for an Await.
		waits := i < len(r.Spec.Changes) && r.awaits(i) &&
			(from == api.ItemPending && to == api.ItemCommitted || from == api.ItemCommitted && to == api.ItemRolledBack && is.phase == string(api.PhaseRollingBack))
		// Another plan is made of all changes.
		replanned := from == api.ItemSkipped && to == api.ItemPending && is.approval.plans > was.approval.plans
		// What deletes its target instead is prepared for that when its turn comes.
		turns := i < len(r.at) && r.at[i] == is && to == api.ItemPending && (from == api.ItemPrepared || from == api.ItemSkipped)
		if from != to && !turns && !waits && !settling && !withdrawn && !spared && !replanned && !slices.Contains(itemMoves[from], to) {
			c.breach(Phases, "%s item %d went from %s (@%d) to %s (@%d by %s)", r, i, from, was.Revision, to, is.Revision, is.by.At)
		}
	}
}

func annotation(s *state, name string) string {
	return str(s.Object.Object, "metadata", "annotations", name)
}

// judgeAside: an item is set aside only while it is about to be rolled back, or when it could
// not be; and it says why.
func (c *trial) judgeAside(r *run, s *state, i int) {
	item := &s.items[i]
	if item.aside && (!item.in(api.ItemRollingBack, api.ItemUnresolved) || item.reason == "" || item.message == "") {
		c.breach(Phases, "%s item %d is %s (@%d) and set aside, with reason %q", r, i, item.state, s.Revision, item.reason)
	}
}

// judgeConsistent: what a status says at one time goes together.
func (c *trial) judgeConsistent(r *run, s *state) {
	allowed, final := endings[api.Phase(s.phase)]
	if s.completed != final {
		c.breach(Phases, "%s: it is %q (@%d), and that it has a completionTime is %t", r, s.phase, s.Revision, s.completed)
	}
	if len(s.items) > 0 && len(s.items) != len(r.Spec.Changes) {
		c.breach(Phases, "%s: it has %d changes and %d items (@%d)", r, len(r.Spec.Changes), len(s.items), s.Revision)
	}
	for i := range s.items {
		item := &s.items[i]
		if final && !item.in(allowed...) && (!item.in(api.ItemCommitted) || s.phase != string(api.PhaseFailed) || r.endedInPart() == nil) {
			c.breach(Phases, "%s is %s (@%d) with item %d %s", r, s.phase, s.Revision, i, item.state)
		}
		if s.phase == string(api.PhaseCommitted) && !item.in(api.ItemSkipped) && i < len(r.Spec.Changes) && !r.doneAt(s, i) {
			c.breach(Phases, "%s is Committed (@%d) with item %d not ready", r, s.Revision, i)
		}
		c.judgeAside(r, s, i)
		rolledBack := item.in(api.ItemRolledBack) || item.back != nil
		committed := item.in(api.ItemCommitted, api.ItemRollingBack, api.ItemUnresolved) && !rolledBack
		if item.prepared == item.in(api.ItemPending, api.ItemSkipped) || item.committed != committed || item.rolledBack != rolledBack {
			c.breach(Phases, "%s item %d is %s (@%d), with prepared=%t committed=%t rolledBack=%t", r, i, item.state, s.Revision, item.prepared, item.committed, item.rolledBack)
		}
	}
}

package controller

import (
	"fmt"
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// Recorder turns what the engine has made durable into events, metrics and log
// lines: one event for the end, for a rollback, for each other phase that lasts, and for each
// thing waited for, none for a retry.
type Recorder struct {
	recorder events.EventRecorder
	metrics  *Metrics
	log      *zap.Logger
	lasting  *lasting
}

// NewRecorder makes a Recorder.
func NewRecorder(recorder events.EventRecorder, metrics *Metrics, clock clock.WithDelayedExecution, log *zap.Logger) *Recorder {
	return &Recorder{recorder: recorder, metrics: metrics, log: log, lasting: newLasting(clock)}
}

// Checkpointed implements engine.Recorder.
func (w *Recorder) Checkpointed(before, after *api.Transaction) {
	w.metrics.checkpointed(before, after)
	log := w.log.With(about(after)...).With(zap.Int64("version", after.Status.Version))
	if from, to := before.Status.Phase, after.Status.Phase; from != to {
		reason, message := readiness(after)
		log.Info("phase changed", zap.String("from", string(orPending(from))), zap.String("phase", string(to)),
			zap.String("reason", reason), zap.String("message", message))
		w.phase(after, message)
	} else if reason, message := waiting(after); reason != "" && message != waitingMessage(before) {
		log.Info("waiting", zap.String("phase", string(after.Status.Phase)), zap.String("reason", reason), zap.String("message", message))
		w.event(after, reason, message)
	} else if before.Status.SuspendTime != nil && after.Status.SuspendTime == nil {
		log.Info("resumed", zap.String("phase", string(after.Status.Phase)))
		w.event(after, reasonResumed, fmt.Sprintf("resumed; %s changes are in effect", after.Status.Progress))
	}
	w.approval(log, before, after)
	w.items(log, before, after)
}

// approval tells that the first plan stands, who has approved one, and that an approval does not
// count any more. Of a later plan it is told as of any wait.
func (w *Recorder) approval(log *zap.Logger, before, after *api.Transaction) {
	switch was, is := plan.Approved(before), plan.Approved(after); {
	case plan.Standing(after) && before.Status.Phase != after.Status.Phase:
		reason, message := waiting(after)
		w.event(after, reason, message)
	case is && !was:
		a := after.Status.Approval
		log.Info("plan approved", zap.String("plan", a.Digest), zap.String("by", a.ApprovedBy))
		w.event(after, plan.ReasonApproved, fmt.Sprintf("%s approved plan %s", a.ApprovedBy, a.Digest))
	case was && !is && after.Status.Approval != nil:
		items := strings.Join(after.Status.Approval.Changed, ", ")
		log.Info("plan changed", zap.String("plan", before.Status.Approval.Digest), zap.String("items", items))
		w.recorder.Eventf(after, nil, corev1.EventTypeWarning, plan.ReasonPlanChanged, "Transact", "%s", errclass.Printable(fmt.Sprintf(
			"plan %s, which %s approved, has changed: items %s would do something else now", before.Status.Approval.Digest, before.Status.Approval.ApprovedBy, items)))
	}
}

func (w *Recorder) items(log *zap.Logger, before, after *api.Transaction) {
	var warnings []string
	for i := range after.Status.Items {
		item, old := &after.Status.Items[i], &api.Item{}
		if i < len(before.Status.Items) {
			old = &before.Status.Items[i]
		}
		if old.State != item.State {
			log.Debug("item changed", zap.String("item", item.Name), zap.String("state", string(item.State)),
				zap.String("target", item.Target.Kind+" "+item.Target.Namespace+"/"+item.Target.Name))
		}
		for _, warning := range item.Warnings[min(len(old.Warnings), len(item.Warnings)):] {
			warnings = append(warnings, "item "+item.Name+": "+warning)
		}
		// Why an item was rejected, or is refused before anything is done, is told with the
		// phase, unless the others are made.
		if item.State == api.ItemSkipped && old.State != item.State {
			w.recorder.Eventf(part(after, item), nil, eventType(after), reasonSkipped, "Transact", "%s", says(item))
		} else if item.Message != old.Message && item.Message != "" && (item.State != api.ItemRejected || item.Failed) && item.State != api.ItemPending {
			action := "RollBack"
			switch {
			case item.Failed:
				action = "Transact"
			case item.State == api.ItemCommitted:
				action = "HandOver"
			}
			w.recorder.Eventf(part(after, item), nil, corev1.EventTypeWarning, item.Reason, action, "%s", says(item))
		}
	}
	if len(warnings) > 0 {
		w.recorder.Eventf(after, nil, corev1.EventTypeWarning, reasonWarned, "Prepare", "%s",
			errclass.Printable(fmt.Sprintf("%d warnings (see status.items[].warnings): %s", len(warnings), strings.Join(warnings, "; "))))
	}
}

// phase tells of a phase that has begun: of the end and of a rollback at once, of another if it
// lasts.
func (w *Recorder) phase(t *api.Transaction, message string) {
	w.lasting.over(t.UID)
	phase := t.Status.Phase
	if phase.Terminal() || phase == api.PhaseRollingBack {
		w.event(t, string(phase), message)
		return
	}
	whole := part(t, &api.Item{})
	whole.FieldPath = ""
	w.lasting.begin(t.UID, func() {
		w.recorder.Eventf(whole, nil, corev1.EventTypeNormal, string(phase), "Transact", "%s", errclass.Printable(message))
	})
}

// part refers to an item of a Transaction. Events about one version of one object that
// differ in nothing but their words are counted and not told; one checkpoint may have
// something to say of several items.
func part(t *api.Transaction, item *api.Item) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: api.GroupVersion.String(), Kind: api.Kind.Kind,
		Namespace: t.Namespace, Name: t.Name, UID: t.UID, ResourceVersion: t.ResourceVersion,
		FieldPath: "status.items{" + item.Name + "}",
	}
}

// says is what an event tells of an item.
func says(item *api.Item) string {
	return errclass.Printable("item " + item.Name + ": " + item.Message)
}

// reasonSkipped is that of the event about a change that is not made.
const reasonSkipped = "Skipped"

// reasonResumed is that of the event about a Transaction that is suspended no more.
const reasonResumed = "Resumed"

// reasonWarned is that of the event about changes that are hard to roll back.
const reasonWarned = "HardToRollBack"

// Abandoned implements engine.Recorder.
func (w *Recorder) Abandoned(t *api.Transaction) {
	w.lasting.over(t.UID)
	message := fmt.Sprintf("deleted in phase %s: its locks are released, and its changes stay as they are (%s)",
		orPending(t.Status.Phase), inEffect(t))
	w.log.With(about(t)...).Info("abandoned", zap.String("phase", string(t.Status.Phase)), zap.String("progress", t.Status.Progress))
	if !t.Status.Phase.Terminal() {
		w.recorder.Eventf(t, nil, corev1.EventTypeWarning, errclass.Cancelled, "Release", "%s", errclass.Printable(message))
	}
}

// Expired implements engine.Recorder. Nobody can look at events of what is gone.
func (w *Recorder) Expired(t *api.Transaction, retired bool) {
	why := "deleted: its ttlSecondsAfterFinished are over"
	switch {
	case plan.NeverStored(t):
		why = "deleted: the command that created it has not stored its content"
	case retired:
		why = "deleted: as many as are kept have ended since"
	}
	w.log.With(about(t)...).Info(why, zap.String("phase", string(t.Status.Phase)), zap.String("progress", t.Status.Progress))
}

// mostNamed is how many items are named of which it is not known whether they are in effect.
const mostNamed = 3

// inEffect says how many changes of a Transaction are in effect, and names those of which
// that is not known because a request may have been sent.
func inEffect(t *api.Transaction) string {
	done := 0
	var perhaps []string
	for i := range t.Status.Items {
		switch item := &t.Status.Items[i]; {
		case item.Committed:
			done++
		case item.State == api.ItemCommitting:
			perhaps = append(perhaps, fmt.Sprintf("%s (%s)", item.Name, item.Target.String()))
		}
	}
	text := fmt.Sprintf("%d/%d in effect", done, len(t.Spec.Changes))
	if len(perhaps) > 0 {
		text += fmt.Sprintf(", and perhaps %d more: items %s", len(perhaps), strings.Join(perhaps[:min(len(perhaps), mostNamed)], ", "))
	}
	if more := len(perhaps) - mostNamed; more > 0 {
		text += fmt.Sprintf(", and %d others", more)
	}
	return text
}

func (w *Recorder) event(t *api.Transaction, reason, message string) {
	// The API server takes at most 1024 bytes.
	w.recorder.Eventf(t, nil, eventType(t), reason, "Transact", "%s", errclass.Printable(message))
}

func eventType(t *api.Transaction) string {
	switch t.Status.Phase {
	case api.PhaseRollingBack, api.PhaseRolledBack, api.PhaseFailed:
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

func readiness(t *api.Transaction) (reason, message string) {
	if c := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady); c != nil {
		return c.Reason, c.Message
	}
	return "", ""
}

// waiting says what a running Transaction waits for; nothing when it does not.
func waiting(t *api.Transaction) (reason, message string) {
	c := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReconciling)
	if c == nil || t.Status.Phase.Terminal() || c.Reason == string(t.Status.Phase) {
		return "", ""
	}
	return c.Reason, c.Message
}

func waitingMessage(t *api.Transaction) string {
	_, message := waiting(t)
	return message
}

package controller

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/wiring/leftovers"
)

// A decoded is a Transaction as the watch decodes it. It has those fields alone that this
// package reads: thousands of Transactions that have ended are decoded when janusd starts,
// and to make maps of all of them would take longer than anything else.
type decoded struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		TTLSecondsAfterFinished *int64        `json:"ttlSecondsAfterFinished"`
		Timeout                 *api.Duration `json:"timeout"`
		// Changes, and the items of the status, are decoded of few Transactions alone.
		Changes json.RawMessage `json:"changes"`
	} `json:"spec"`
	Status struct {
		Phase              api.Phase        `json:"phase"`
		ObservedGeneration int64            `json:"observedGeneration"`
		StartTime          string           `json:"startTime"`
		RollbackStartTime  string           `json:"rollbackStartTime"`
		CompletionTime     string           `json:"completionTime"`
		SuspendTime        string           `json:"suspendTime"`
		SuspendedSeconds   int64            `json:"suspendedSeconds"`
		RollbackRef        *api.RollbackRef `json:"rollbackRef"`
		RevisionDigest     string           `json:"revisionDigest"`
		Approval           struct {
			Digest        string `json:"digest"`
			ApprovalTime  string `json:"approvalTime"`
			WaitedSeconds int64  `json:"waitedSeconds"`
		} `json:"approval"`
		Reconciling reconciling     `json:"conditions"`
		Items       json.RawMessage `json:"items"`
	} `json:"status"`
}

// decodedList are a list of Transactions as the watch decodes it, where the API server does
// not stream it.
type decodedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []decoded `json:"items"`
}

// DeepCopyObject copies it, as every object of a scheme must be able to.
func (s *decoded) DeepCopyObject() runtime.Object {
	out := *s
	s.DeepCopyInto(&out.ObjectMeta)
	if seconds := s.Spec.TTLSecondsAfterFinished; seconds != nil {
		out.Spec.TTLSecondsAfterFinished = ptr.To(*seconds)
	}
	if timeout := s.Spec.Timeout; timeout != nil {
		out.Spec.Timeout = ptr.To(*timeout)
	}
	out.Spec.Changes, out.Status.Items = slices.Clone(s.Spec.Changes), slices.Clone(s.Status.Items)
	out.Status.RollbackRef = s.Status.RollbackRef.DeepCopy()
	return &out
}

// DeepCopyObject copies it, as every object of a scheme must be able to.
func (s *decodedList) DeepCopyObject() runtime.Object {
	out := *s
	out.Items = make([]decoded, len(s.Items))
	for i := range s.Items {
		out.Items[i] = *s.Items[i].DeepCopyObject().(*decoded) //nolint:forcetypeassert // see above
	}
	return &out
}

// summary is what the informer keeps of a Transaction, so that many finished ones cost little
// memory: an ObjectMeta alone would be twice as much.
type summary struct {
	name                 types.NamespacedName
	uid                  types.UID
	resourceVersion      string
	generation, observed int64
	deleted              bool // or to be
	begun                bool // and not cleared up yet
	phase                api.Phase
	// completion is when it ended; zero if it has not.
	completion metav1.Time
	// ttl is how long it is to stay after its end; nil means for ever.
	ttl *time.Duration
	// stays says that it is not to go because there are others.
	stays bool
	// recover is what its annotation asks for.
	recover string
	// approval is what its annotations approve, and in whose name.
	approval [2]string
	// standing says that its plan waits for that.
	standing bool
	// progress is what the metrics tell of one that has not ended.
	progress *progress
	// ended is set if it has ended and what may be left of it can be found out together with that of
	// others.
	ended *leftovers.Ended
}

// GetObjectMeta returns what an informer asks of its objects.
func (g *summary) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: g.name.Namespace, Name: g.name.Name, UID: g.uid, ResourceVersion: g.resourceVersion}
}

// trim cuts what the informer gets down to that.
func trim(obj any) (any, error) {
	s, ok := obj.(*decoded)
	if !ok {
		return obj, nil
	}
	g := &summary{
		name:            types.NamespacedName{Namespace: s.Namespace, Name: s.Name},
		uid:             s.UID,
		resourceVersion: s.ResourceVersion,
		generation:      s.Generation,
		observed:        s.Status.ObservedGeneration,
		deleted:         s.DeletionTimestamp != nil,
		begun:           plan.Begun(s.Finalizers, s.Status.Phase),
		phase:           cmp.Or(s.Status.Phase, api.PhasePending),
		stays:           mustStay(s),
		recover:         strings.Clone(s.Annotations[api.RecoverAnnotation]),
		approval:        [2]string{strings.Clone(s.Annotations[api.ApprovedPlanAnnotation]), strings.Clone(s.Annotations[api.ApprovedByAnnotation])},
	}
	g.standing = g.phase == api.PhasePending && s.Status.Approval.Digest != "" && s.Status.Approval.ApprovalTime == ""
	if text := s.Status.CompletionTime; text != "" && g.completion.UnmarshalQueryParameter(text) != nil {
		g.completion = metav1.Time{} // It is looked at as one that has not said when it ended.
	}
	g.progress = progressOf(s, g)
	if seconds := s.Spec.TTLSecondsAfterFinished; seconds != nil {
		g.ttl = ptr.To(time.Duration(*seconds) * time.Second)
	}
	return g, nil
}

// mustStay reports whether a Transaction is not to go because there are others: something
// may yet be rolled back of it, or it can be undone.
func mustStay(s *decoded) bool {
	inPart := s.Status.Phase == api.PhaseFailed && s.Status.RevisionDigest != ""
	if (s.Status.Phase == api.PhaseCommitted || inPart) && s.Status.RollbackRef != nil {
		return true
	}
	if s.Status.Phase != api.PhaseFailed || len(s.Status.Items) == 0 {
		return false
	}
	var items []struct {
		State api.ItemState `json:"state"`
	}
	if json.Unmarshal(s.Status.Items, &items) != nil {
		return true // Nothing is known of them.
	}
	for _, item := range items {
		if item.State == api.ItemUnresolved {
			return true
		}
	}
	return false
}

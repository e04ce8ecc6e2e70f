package ui

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

// Summary is a Transaction as a line of the list. Times are in RFC 3339, or empty.
type Summary struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Version differs for each version of the Transaction.
	Version  string `json:"version"`
	Phase    string `json:"phase"`
	Progress string `json:"progress"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	Created  string `json:"created"`
	Started  string `json:"started"`
	Ended    string `json:"ended"`
}

func summaryOf(t *api.Transaction) Summary {
	s := Summary{
		Namespace: t.Namespace, Name: t.Name, UID: string(t.UID), Version: t.ResourceVersion,
		Phase:    string(cmp.Or(t.Status.Phase, api.PhasePending)),
		Progress: t.Status.Progress,
		Created:  stamp(&t.CreationTimestamp), Started: stamp(t.Status.StartTime), Ended: stamp(t.Status.CompletionTime),
	}
	if ready := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady); ready != nil {
		s.Reason, s.Message = ready.Reason, ready.Message
	}
	return s
}

func stamp(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

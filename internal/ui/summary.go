package ui

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
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
	Version string `json:"version"`
	Phase   string `json:"phase"`
	// State is the phase of a Transaction that has ended, and Running or Waiting for one that
	// has not.
	State string `json:"state"`
	// Done counts the changes that are in effect and ready, Waiting those of which the target is
	// waited for, and Total all but those that are skipped.
	Done    int `json:"done"`
	Waiting int `json:"waiting"`
	Total   int `json:"total"`
	// Wait is what a Transaction waits for; of several the first. More counts the others.
	Wait           *Wait  `json:"wait"`
	More           int    `json:"more"`
	ServiceAccount string `json:"serviceAccount"`
	// Creator is what the Transaction was made for, or the program that has made it.
	Creator string `json:"creator"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Created string `json:"created"`
	Started string `json:"started"`
	Ended   string `json:"ended"`
}

const (
	stateRunning = "Running"
	stateWaiting = "Waiting"
)

func summaryOf(t *api.Transaction) Summary {
	s := Summary{
		Namespace: t.Namespace, Name: t.Name, UID: string(t.UID), Version: t.ResourceVersion,
		Phase: string(cmp.Or(t.Status.Phase, api.PhasePending)), State: stateOf(t),
		ServiceAccount: t.Spec.ServiceAccountName, Creator: creatorOf(t),
		Created: stamp(&t.CreationTimestamp), Started: stamp(t.Status.StartTime), Ended: stamp(t.Status.CompletionTime),
	}
	s.Done, s.Waiting, s.Total = countsOf(t)
	if waits := waitsOf(t); len(waits) > 0 {
		s.Wait, s.More = &waits[0], len(waits)-1
	}
	if ready := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady); ready != nil {
		s.Reason, s.Message = ready.Reason, ready.Message
	}
	return s
}

func stateOf(t *api.Transaction) string {
	switch {
	case t.Status.Phase.Terminal():
		return string(t.Status.Phase)
	case waits(t):
		return stateWaiting
	default:
		return stateRunning
	}
}

// countsOf counts the changes. Of a Transaction that has ended the status has counted them.
func countsOf(t *api.Transaction) (done, waiting, total int) {
	if t.Status.Phase.Terminal() || len(t.Status.Items) == 0 {
		if n, err := fmt.Sscanf(t.Status.Progress, "%d/%d", &done, &total); err != nil || n != 2 {
			return 0, 0, len(t.Spec.Changes)
		}
		return done, 0, total
	}
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		since, _ := awaited(t, i)
		switch {
		case item.State == api.ItemSkipped && !item.Failed:
			continue
		case since != nil:
			waiting++
		case item.State == api.ItemCommitted && !item.Failed:
			done++
		}
		total++
	}
	return done, waiting, total
}

// creatorOf names what a Transaction was made for, or else the field manager that has set its
// changes: the API server keeps no user.
func creatorOf(t *api.Transaction) string {
	if owners := t.DescribeOwners(); owners != "" {
		return owners
	}
	var first *metav1.ManagedFieldsEntry
	for i := range t.ManagedFields {
		entry := &t.ManagedFields[i]
		if !setsChanges(entry) || first != nil && !entry.Time.Before(first.Time) {
			continue
		}
		first = entry
	}
	if first == nil {
		return ""
	}
	return first.Manager
}

func setsChanges(entry *metav1.ManagedFieldsEntry) bool {
	if entry.FieldsV1 == nil || entry.Subresource != "" {
		return false
	}
	text := entry.FieldsV1.GetRawString()
	return strings.Contains(text, `"f:changes"`) || strings.Contains(text, `"f:undoOf"`)
}

// nameOf is the name of an item: that of the change, or its position in the list.
func nameOf(t *api.Transaction, i int) string {
	if i < len(t.Status.Items) && t.Status.Items[i].Name != "" {
		return t.Status.Items[i].Name
	}
	if i < len(t.Spec.Changes) && t.Spec.Changes[i].Name != "" {
		return t.Spec.Changes[i].Name
	}
	return strconv.Itoa(i)
}

func stamp(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

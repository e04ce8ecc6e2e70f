package harness

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
)

// Describe writes the status of a Transaction on a few lines, for failures and
// transcripts.
func Describe(t *api.Transaction) string {
	if t == nil {
		return "absent"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", t.Status.Phase, t.Status.Progress)
	if c := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady); c != nil {
		fmt.Fprintf(&b, " %s: %s", c.Reason, c.Message)
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReconciling); c != nil && c.Status == "True" {
		fmt.Fprintf(&b, " [%s: %s]", c.Reason, c.Message)
	}
	for _, item := range t.Status.Items {
		fmt.Fprintf(&b, "\n  %s %s %s/%s: %s", item.Name, item.Target.Kind, item.Target.Namespace, item.Target.Name, item.State)
		if item.Message != "" {
			fmt.Fprintf(&b, " (%s: %s)", item.Reason, item.Message)
		}
	}
	return b.String()
}

// Condition returns status, reason and message of a condition of a Transaction.
func Condition(t *api.Transaction, kind string) (status, reason, message string) {
	c := meta.FindStatusCondition(t.Status.Conditions, kind)
	if c == nil {
		return "", "", ""
	}
	return string(c.Status), c.Reason, c.Message
}

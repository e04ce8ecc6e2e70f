package v1alpha1

import "fmt"

// TimeoutLimit is how many attempts in a row may time out on the same object, of a Transaction without
// a limit of its own. The waits in between take six minutes and more, and so does a time-out each: a webhook
// that is restarted comes back sooner.
const TimeoutLimit = 20

// DescribeTimeouts says which object requests time out on, how often in a row, and what to do about it;
// empty if none do, or nothing is tried any more. A Transaction without a limit of its own goes forward
// until TimeoutLimit is reached; a rollback doesn't end by it. The name of the object may hold anything.
func (t *Transaction) DescribeTimeouts() string {
	on := t.Status.TimedOut
	if on == nil || t.Status.Phase.Terminal() {
		return ""
	}
	times := fmt.Sprintf("%d times in a row", on.Attempts)
	switch {
	case t.Spec.RetryLimit == nil && t.Status.Phase != PhaseRollingBack:
		times = fmt.Sprintf("%d of %d times in a row until Janus gives up", on.Attempts, TimeoutLimit)
	case on.Attempts == 1:
		times = "once"
	}
	return fmt.Sprintf("%s, %s; mend the webhook that checks it, or make the object smaller if it has very many field managers", on.Object, times)
}

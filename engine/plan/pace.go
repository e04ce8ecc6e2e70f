package plan

import (
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Paced is the reason of the wait for the turn of the next change.
const Paced = "Paced"

// Spacing is the time from the beginning of one change to that of the next; zero if there
// is none to keep.
func Spacing(t *api.Transaction) time.Duration {
	if n := t.Spec.ChangesPerMinute; n != nil && *n > 0 {
		return time.Minute / time.Duration(*n)
	}
	return 0
}

// InTime refuses a Transaction whose changes cannot all be begun within its timeout, as
// spec.changesPerMinute spaces them. Those that may turn out not to be wanted do not count.
func InTime(t *api.Transaction) error {
	n := 0
	for i := range t.Spec.Changes {
		if !AskedInTurn(t, i) && t.Status.Items[i].Changes() {
			n++
		}
	}
	takes := time.Duration(n-1) * Spacing(t)
	if n < 2 || takes < Timeout(t) {
		return nil
	}
	return errclass.New(errclass.Terminal, errclass.Invalid, "validate", "the changes",
		"to begin %d of them takes %s at %d a minute, and spec.timeout is %s", n, takes, *t.Spec.ChangesPerMinute, Timeout(t)).
		WithHint("raise timeout or changesPerMinute, or split the Transaction")
}

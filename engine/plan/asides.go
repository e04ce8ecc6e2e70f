package plan

import (
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Postponed are the objects whose items are not to be rolled back yet.
type Postponed map[api.Target]bool

// Covers reports whether an item is not to be rolled back now: it is set aside, or a later
// change of the same object is. over says that it is rolled back, and not on record yet.
func (postponed *Postponed) Covers(item *api.Item, over bool) bool {
	if len(*postponed) > 0 && (*postponed)[item.Target.Identity()] {
		return true
	}
	if !IsSetAside(item) || over {
		return false
	}
	if *postponed == nil {
		*postponed = Postponed{}
	}
	(*postponed)[item.Target.Identity()] = true
	return true
}

// IsSetAside reports whether an item was refused and is to be rolled back once others are.
func IsSetAside(item *api.Item) bool { return item.State == api.ItemRollingBack && item.SetAside }

// Curable reports a refusal for which what an earlier change has done may be the reason. To
// wait for a webhook that an earlier change has made, and that nobody serves, is to wait in
// vain.
func Curable(err error) bool {
	switch errclass.ReasonOf(err) {
	case errclass.Invalid, errclass.TooLarge, errclass.AlreadyAllocated, errclass.NotFound, errclass.NamespaceNotFound, errclass.KindNotFound,
		errclass.AccessDenied, errclass.Rejected, errclass.WebhookUnavailable, errclass.NotEmpty, errclass.ControllerMade:
		return true
	}
	return false
}

// ClearSetAside drops what was said of an item that was set aside and is rolled back.
func ClearSetAside(item *api.Item) {
	if item.SetAside {
		item.SetAside, item.Reason, item.Message = false, "", ""
	}
}

// NotYet is the wait for what was rolled back to take effect.
func NotYet(why error, after time.Duration) error {
	return &errclass.Error{
		Op: "try again", Class: errclass.Retryable, Reason: errclass.ReasonOf(why), RetryAfter: after,
		Err: why, Hint: "what was rolled back may not be in effect everywhere yet",
	}
}

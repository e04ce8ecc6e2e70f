package plan

import (
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// IsSetAside reports whether an item was refused and is to be rolled back once others are.
func IsSetAside(item *api.Item) bool { return item.State == api.ItemRollingBack && item.SetAside }

// Curable reports a refusal for which what an earlier change has done may be the reason. To
// wait for a webhook or an API that an earlier change has made, and that nobody serves, is to wait
// in vain; so may be the wait for the count of a quota.
func Curable(err error) bool {
	switch errclass.ReasonOf(err) {
	case errclass.Invalid, errclass.TooLarge, errclass.AlreadyAllocated, errclass.NotFound, errclass.NamespaceNotFound, errclass.KindNotFound,
		errclass.AccessDenied, errclass.Rejected, errclass.WebhookUnavailable, errclass.NotEmpty, errclass.ControllerMade:
		return true
	}
	switch errclass.RefuserOf(err) {
	case errclass.ByDeadAPI, errclass.ByConversion, errclass.ByUncountedQuota:
		return true
	}
	return false
}

// ClearSetAside drops what was said of an item that was set aside and is rolled back.
func ClearSetAside(item *api.Item) {
	if item.SetAside {
		item.SetAside, item.SetAsideFor, item.Reason, item.Message = false, nil, "", ""
	}
}

// NotYet is the wait for what makes a compensation possible to take effect.
func NotYet(why error, after time.Duration, hint string) error {
	return &errclass.Error{Op: "try again", Class: errclass.Retryable, Reason: errclass.ReasonOf(why), RetryAfter: after, Err: why, Hint: hint}
}

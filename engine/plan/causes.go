package plan

import (
	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Cause is why a Transaction does not commit.
type Cause struct {
	Reason, Message string
	// Item is the name of the item that failed; empty when it is about none.
	Item string
}

// Definite reports an error after which nothing took effect and trying again
// will not help.
func Definite(err error) bool {
	if err == nil {
		return false
	}
	class := errclass.ClassOf(err)
	return class == errclass.Terminal || class == errclass.Conflict
}

func CauseOf(err error) Cause {
	return Cause{Reason: errclass.ReasonOf(err), Message: errclass.Message(err)}
}

func ItemCause(t *api.Transaction, i int, err error) Cause {
	cause := CauseOf(err)
	cause.Item = t.Status.Items[i].Name
	return cause
}

func Diverged(t *api.Transaction, i int) error {
	target := t.Status.Items[i].Target
	return errclass.New(errclass.Conflict, errclass.Drifted, "observe", Describe(target),
		"it is neither as it was nor as the change would leave it: another client has written it").
		WithHint("their version is kept; compare it with the before-image and correct it by hand")
}

// Settling is the reason of the wait for a request to land or not.
const Settling = "Settling"

// Unsettled is the wait for a request to land or not.
func Unsettled(what string) error {
	return errclass.New(errclass.Retryable, Settling, "settle", what, "waiting until a request sent before cannot take effect any more")
}

package errclass

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Classify returns the class and the reason of an error. An *Error in the chain
// has been classified already; a Status of the API server is judged by its code,
// reason and causes; anything else is of unknown outcome.
func Classify(err error) (Class, string) {
	var own *Error
	if errors.As(err, &own) {
		return own.Class, own.Reason
	}
	if meta.IsNoMatchError(err) {
		return Terminal, KindNotFound
	}
	if Unshowable(err) {
		return Unknown, Invalid
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return classifyStatus(status.Status())
	}
	return Unknown, ServerUnavailable
}

// Unshowable reports an answer that came and is no object: the API server answers 500 for an
// object that has a list named items at its top, which it takes for a list of objects, and
// a client cannot decode what is of another form. A read will not be answered any better;
// of a write, it says nothing of what has become of that. The list is known by its words
// alone.
func Unshowable(err error) bool {
	var value *json.UnmarshalTypeError
	if err == nil || errors.As(err, &value) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) {
		return err != nil
	}
	return strings.Contains(err.Error(), "is not a list: no Items field")
}

func classifyStatus(s metav1.Status) (Class, string) {
	if isDenial(s) {
		return Terminal, Rejected
	}
	switch s.Code {
	case http.StatusConflict:
		return classifyConflict(s)
	case http.StatusForbidden:
		switch {
		case hasCause(s, corev1.NamespaceTerminatingCause):
			return Terminal, Terminating
		case refuserIn(s) == ByUncountedQuota:
			return Retryable, NotInEffect
		}
		return Terminal, AccessDenied
	case http.StatusNotFound:
		return classifyNotFound(s)
	case http.StatusUnprocessableEntity:
		return classifyInvalid(s)
	case http.StatusBadRequest, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return Terminal, Invalid
	case http.StatusRequestEntityTooLarge:
		return Terminal, TooLarge
	case http.StatusTooManyRequests:
		return Retryable, TooManyRequests
	case http.StatusUnauthorized:
		// Our own credentials are being rotated: nothing was done, and the next
		// attempt reads the new token.
		return Retryable, ServerUnavailable
	case http.StatusGone:
		return Retryable, StaleVersion
	case http.StatusInternalServerError:
		return classifyInternal(s)
	default:
		return Unknown, ServerUnavailable
	}
}

// denial is how the message begins if a webhook or a policy has denied a request.
var denial = regexp.MustCompile(`^(admission webhook "[^"]*" denied the request|[^']* is forbidden: ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request)`)

// isDenial reports whether a webhook or a policy has denied a request with a code that means something else
// otherwise. The API server passes their codes on: a webhook may answer 404 for what it has not found
// itself, or 409 for what is in use.
func isDenial(s metav1.Status) bool {
	switch s.Code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusConflict, http.StatusGone:
		return denial.MatchString(s.Message)
	default:
		return false
	}
}

// classifyConflict tells the three meanings of 409 apart. A field-manager
// conflict and a stale resourceVersion have the same reason; only the causes
// differ.
func classifyConflict(s metav1.Status) (Class, string) {
	switch {
	case s.Reason == metav1.StatusReasonAlreadyExists:
		return Conflict, AlreadyExists
	case hasCause(s, metav1.CauseTypeFieldManagerConflict):
		return Conflict, FieldConflict
	default:
		return Retryable, StaleVersion
	}
}

// classifyNotFound tells a missing namespace from a missing object: the details
// of the answer name what was not found.
func classifyNotFound(s metav1.Status) (Class, string) {
	if s.Details != nil && s.Details.Kind == "namespaces" {
		return Terminal, NamespaceNotFound
	}
	return Terminal, NotFound
}

// allocated is how the API server ends its complaint about a port or an address that
// another Service has.
const allocated = "is already allocated"

// classifyInvalid tells a request of which the content is at fault from one for a port or
// an address that another has, which may be free at another time. There is nothing but
// the text to tell them by.
func classifyInvalid(s metav1.Status) (Class, string) {
	if s.Details == nil || len(s.Details.Causes) == 0 {
		return Terminal, Invalid
	}
	for _, c := range s.Details.Causes {
		if !strings.HasSuffix(c.Message, allocated) {
			return Terminal, Invalid
		}
	}
	return Terminal, AlreadyAllocated
}

// Unserved reports whether an error is a 404 that says nothing of an object: the path was
// not served, as that of a version that its kind has no more, or something before the API
// server has answered.
func Unserved(err error) bool {
	status, ok := Status(err)
	return ok && status.Code == http.StatusNotFound && hasCause(status, metav1.CauseTypeUnexpectedServerResponse)
}

// webhookDown is how the API server says that an admission webhook could not be asked. It
// calls that an internal error of its own; there is nothing but its text to know it by.
const webhookDown = "failed calling webhook"

// permanentInternal are the errors that the API server reports as 500 although
// they will never heal. There is nothing but their text to know them by.
var permanentInternal = []struct{ text, reason string }{
	{"request is too large", TooLarge},
	{"trying to send message larger than max", TooLarge},
	{"resourceVersion should not be set on objects to be created", Invalid},
	// An apply whose content does not fit the kind: the same content never will.
	{"failed to create typed patch object", Invalid},
	{"failed to convert new object", Invalid},
}

func classifyInternal(s metav1.Status) (Class, string) {
	for _, p := range permanentInternal {
		if strings.Contains(s.Message, p.text) {
			return Terminal, p.reason
		}
	}
	if strings.Contains(s.Message, webhookDown) {
		return Unknown, WebhookUnavailable
	}
	return Unknown, ServerUnavailable
}

func hasCause(s metav1.Status, cause metav1.CauseType) bool {
	if s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if c.Type == cause {
			return true
		}
	}
	return false
}

// retryAfter is what the server asked for in the body of its answer. The header
// of the same name is taken off before client-go sees it, since client-go would
// repeat the request by itself.
func retryAfter(err error) time.Duration {
	if wait := RetryAfter(err); wait > 0 {
		return wait
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return time.Duration(seconds) * time.Second
	}
	return 0
}

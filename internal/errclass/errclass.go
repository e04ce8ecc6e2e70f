package errclass

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/objectid"
)

// Class says what may be done after an error.
type Class int

const (
	// Unknown means that the request may or may not have taken effect. It is the zero value,
	// so that an error nobody thought of is treated with the greatest care.
	Unknown Class = iota
	// Terminal means that the same request will fail again; nothing took effect.
	Terminal
	// Conflict means that another client's write stands in the way; nothing took effect.
	Conflict
	// Retryable means that nothing took effect, and the same request may succeed later.
	Retryable
)

func (c Class) String() string {
	switch c {
	case Terminal:
		return "terminal"
	case Conflict:
		return "conflict"
	case Retryable:
		return "retryable"
	default:
		return "unknown"
	}
}

// Reasons, as they appear in conditions and items.
const (
	AccessDenied        = "AccessDenied"
	AlreadyAllocated    = "AlreadyAllocated"
	AlreadyExists       = "AlreadyExists"
	Altered             = "Altered"
	ApprovalTimeout     = "ApprovalTimeout"
	ApprovalUnguarded   = "ApprovalUnguarded"
	BeforeImageLost     = "BeforeImageLost"
	BeforeImageTampered = "BeforeImageTampered"
	Blocked             = "Blocked"
	Cancelled           = "Cancelled"
	ContentChanged      = "ContentChanged"
	ContentMissing      = "ContentMissing"
	ControllerMade      = "ControllerMade"
	CyclicDependency    = "CyclicDependency"
	DeadlineExceeded    = "DeadlineExceeded"
	Drifted             = "Drifted"
	FieldConflict       = "FieldConflict"
	GuardBroken         = "GuardBroken"
	Invalid             = "Invalid"
	Irreversible        = "Irreversible"
	KindNotFound        = "KindNotFound"
	LockHeld            = "LockHeld"
	LockLost            = "LockLost"
	NamespaceNotFound   = "NamespaceNotFound"
	NoProgress          = "NoProgress"
	NotInEffect         = "NotInEffect"
	NotFound            = "NotFound"
	NotEmpty            = "NotEmpty"
	NotRemembered       = "NotRemembered"
	OwnerGone           = "OwnerGone"
	ReadyFailed         = "ReadyFailed"
	ReadyTimeout        = "ReadyTimeout"
	Rejected            = "Rejected"
	RetryLimitExceeded  = "RetryLimitExceeded"
	RollbackNotReady    = "RollbackNotReady"
	ServerUnavailable   = "ServerUnavailable"
	ServiceAccountGone  = "ServiceAccountGone"
	SpecChanged         = "SpecChanged"
	StaleVersion        = "StaleVersion"
	Terminating         = "Terminating"
	TooLarge            = "TooLarge"
	TooManyRequests     = "TooManyRequests"
	WebhookUnavailable  = "WebhookUnavailable"
)

// Error is an error with a class. Its text is "operation target: cause; hint".
type Error struct {
	// Op is what was being done, such as "patch".
	Op string
	// Target is the object it was done to, such as "Deployment shop/web".
	Target string
	// Class says what may be done next.
	Class Class
	// Reason is one of the words above.
	Reason string
	// Hint tells the reader the way out; empty when the cause says it.
	Hint string
	// RetryAfter is how long the server asked to wait; zero when it did not.
	RetryAfter time.Duration
	// Err is the cause. For a sensitive object it carries no content of it.
	Err error
	// Refuser is what has refused the request, as far as that can be told; and Backend the
	// namespace of the Service behind a webhook that did not answer. Neither is content.
	Refuser Refuser
	Backend string
	// TimedOut says that the request had no answer in time, of the API server or of a webhook that
	// this has asked.
	TimedOut bool
	// Verb is the verb that the ServiceAccount lacks, where that is known.
	Verb string
	// Lack is the right that was asked for before anything was sent, and that the ServiceAccount
	// does not have; nil for every other error.
	Lack *Lack
	// Fields are those that the error is about, where it is about fields.
	Fields []Field
	// Awaited are the objects whose changes may end what the error is about. There is none where
	// something else may end it, too.
	Awaited []Awaited
}

// Lack is a right that a ServiceAccount does not have.
type Lack struct {
	// Account is the ServiceAccount, such as shop/deployer, and Resource the plural of the
	// objects with their group.
	Account, Verb, Resource string
}

// Awaited is an object that something waits for.
type Awaited struct {
	objectid.ID
	// Holder is the Transaction that holds the lock, if it is the Lease of one. With Shared others
	// may be in the way for other holders than this one.
	Holder types.NamespacedName
	Shared bool
}

// Field is a field that another client has written.
type Field struct {
	// Path is the field, such as .spec.replicas.
	Path string
	// Managers own it now, through a subresource of the object if one is named.
	Managers    []string
	Subresource string
	// Now is its value, and Before the one that it had, as JSON; empty when there
	// is none, and for a sensitive object.
	Now, Before string
}

func (e *Error) Error() string {
	text := e.Op
	if e.Target != "" {
		text += " " + e.Target
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error of the given class and reason from a message of our own.
func New(class Class, reason, op, target, format string, args ...any) *Error {
	return &Error{Op: op, Target: target, Class: class, Reason: reason, Err: fmt.Errorf(format, args...)}
}

// WithHint adds the way out and returns e.
func (e *Error) WithHint(hint string) *Error {
	e.Hint = hint
	return e
}

// FieldsOf returns the fields that err is about.
func FieldsOf(err error) []Field {
	var own *Error
	if errors.As(err, &own) {
		return own.Fields
	}
	return nil
}

// LackOf returns the right that err says is lacking; nil if it says nothing else than that.
func LackOf(err error) *Lack {
	var own *Error
	if errors.As(err, &own) {
		return own.Lack
	}
	return nil
}

// VerbOf returns the verb that a ServiceAccount lacks; empty if err tells of none.
func VerbOf(err error) string {
	var own *Error
	if errors.As(err, &own) {
		return own.Verb
	}
	return ""
}

// ClassOf returns the class of err.
func ClassOf(err error) Class {
	class, _ := Classify(err)
	return class
}

// ReasonOf returns the reason of err, never empty for an error.
func ReasonOf(err error) string {
	_, reason := Classify(err)
	return reason
}

// Is reports whether err has the given reason.
func Is(err error, reason string) bool {
	return err != nil && ReasonOf(err) == reason
}

// AwaitedBy returns the objects whose changes may end what err is about; none if err tells of
// none.
func AwaitedBy(err error) []Awaited {
	var own *Error
	if errors.As(err, &own) {
		return own.Awaited
	}
	return nil
}

// RetryAfter is how long the server asked to wait before the next attempt, or
// zero.
func RetryAfter(err error) time.Duration {
	var own *Error
	if errors.As(err, &own) {
		return own.RetryAfter
	}
	return 0
}

package errclass

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Wrap says what was being done to which object when err happened. With
// sensitive set, the server's answer is reduced to its code, its reason and the
// names of the fields it complains about: its message may quote the values.
// Wrapping nil returns nil.
func Wrap(err error, op, target string, sensitive bool) error {
	if err == nil {
		return nil
	}
	class, reason := Classify(err)
	cause := err
	if sensitive {
		cause = redact(err)
	}
	wrapped := &Error{Op: op, Target: target, Class: class, Reason: reason, RetryAfter: retryAfter(err), Err: cause,
		Refuser: RefuserOf(err), Backend: BackendOf(err), TimedOut: timedOut(err)}
	switch wrapped.Refuser {
	case ByImpersonation, ByUncountedQuota, ByAddress:
		wrapped.Hint = wrapped.Refuser.WayOut()
	}
	return wrapped
}

// redact builds an error that says as much as can be said without quoting. An
// answer of the API server is looked for first, however it is wrapped. What is
// ours, or comes from the network, quotes no object; anything else might.
func redact(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return redactStatus(status.Status(), ReasonOf(err))
	}
	var own *Error
	var network net.Error
	if errors.As(err, &own) || errors.As(err, &network) || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return err
	}
	return fmt.Errorf("an error of type %T (its message is withheld because it may quote the object)", err)
}

func redactStatus(s metav1.Status, reason string) error {
	if s.Reason != "" {
		reason = string(s.Reason)
	}
	text := fmt.Sprintf("the API server answered %d %s", s.Code, reason)
	var fields []string
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			if c.Field != "" {
				fields = append(fields, fmt.Sprintf("%s (%s)", FieldOnly(c.Field), c.Type))
			}
		}
	}
	if len(fields) > 0 {
		text += " for " + strings.Join(fields, ", ")
	}
	if by := refuserIn(s); by != "" {
		text += ", because of " + names[by]
	}
	return errors.New(text + " (its message is withheld because it may quote the object)")
}

// FieldOnly cuts a field path where it would quote a value of a list.
func FieldOnly(path string) string {
	if i := strings.IndexByte(path, '['); i >= 0 && strings.Contains(path, "=") {
		return path[:i]
	}
	return path
}

// MaxMessage is how many bytes of a message go into a status or an event.
const MaxMessage = 1024

// Message is the text of err as it may be shown: on one line, without control
// characters (names and annotations may carry terminal escapes), and cut to
// MaxMessage bytes.
func Message(err error) string {
	if err == nil {
		return ""
	}
	return Printable(err.Error())
}

// Printable makes text safe to show, as Message does.
func Printable(text string) string { return Cut(OneLine(text), MaxMessage) }

// OneLine makes text safe to show, and does not cut it.
func OneLine(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		default:
			return r
		}
	}, text)
}

// Cut shortens text to at most so many bytes, between characters.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// Status returns the answer of the API server inside err, if there is one.
func Status(err error) (metav1.Status, bool) {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status(), true
	}
	return metav1.Status{}, false
}

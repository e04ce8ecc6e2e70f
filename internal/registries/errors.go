package registries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"janus.io/janus/internal/errclass"
)

// Kind is that of an Error.
type Kind string

// The kinds.
const (
	// NotFound: the registry has no such repository, tag or blob, or tells it to nobody else.
	NotFound Kind = "NotFound"
	// Unauthorized: it wants other credentials.
	Unauthorized Kind = "Unauthorized"
	// TooManyRequests: it has been asked too often.
	TooManyRequests Kind = "TooManyRequests"
	// Unavailable: it answers that it cannot answer, or does not answer.
	Unavailable Kind = "Unavailable"
	// TooSlow: it sends nothing any more, or not all of it in time.
	TooSlow Kind = "TooSlow"
	// Damaged: what it sends is truncated, or is not what its digest says.
	Damaged Kind = "Damaged"
)

// Error is what is wrong with a registry, or with what it has sent.
type Error struct {
	Kind  Kind
	text  string
	cause error
}

func (e *Error) Error() string { return e.text }

// Unwrap returns the cause, if there is more to know about it.
func (e *Error) Unwrap() error { return e.cause }

// slowError says that an artifact could not be read in time.
type slowError struct{ after time.Duration }

func (e *slowError) Error() string {
	return fmt.Sprintf("it could not be read within %s: try again later", e.after)
}

// stalledError says that a host sends nothing.
type stalledError struct {
	host  string
	after time.Duration
}

func (e *stalledError) Error() string {
	return fmt.Sprintf("%s has sent nothing for %s: try again later", e.host, e.after)
}

// busyError says that a host cannot answer now.
type busyError struct {
	host        string
	code, times int
	asked       time.Duration
}

func (e *busyError) Error() string {
	text := fmt.Sprintf("%s answers %d %s", e.host, e.code, http.StatusText(e.code))
	if e.times > 1 {
		text += fmt.Sprintf(", %d times in a row", e.times)
	}
	if e.asked > 0 {
		return text + fmt.Sprintf(": try again in %s", e.asked)
	}
	return text + ": try again later"
}

// Explain says what is wrong with a registry, or with what it has sent, and what to do. The
// address of a request is left out: it may be one that a registry has signed. Its error is an
// *Error, unless nobody waits any more.
func Explain(ctx context.Context, host, what string, err error) error {
	var slow *slowError
	var stalled *stalledError
	var busy *busyError
	var answer *errcode.ErrorResponse
	var request *url.Error
	switch {
	case errors.As(err, &stalled):
		return &Error{TooSlow, stalled.Error(), stalled}
	case errors.As(err, &busy):
		return &Error{ofStatus(busy.code), busy.Error(), busy}
	case errors.As(context.Cause(ctx), &slow):
		return &Error{TooSlow, slow.Error(), slow}
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return &Error{Unauthorized, fmt.Sprintf("%s wants a user and a password: log in, such as by docker login %s", host, host), err}
	case errors.As(err, &answer) && answer.StatusCode != http.StatusNotFound:
		return &Error{ofStatus(answer.StatusCode), refused(host, answer), nil}
	case errors.As(err, &answer), errors.Is(err, errdef.ErrNotFound):
		return &Error{NotFound, fmt.Sprintf("%s has no %s", host, what), err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Damaged, what + " is truncated: try again", err}
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData):
		return &Error{Damaged, what + " is not what its digest says", err}
	case errors.As(err, &request):
		err = request.Err
	}
	return &Error{Unavailable, fmt.Sprintf("%s of %s: %s", what, host, errclass.Printable(signed.ReplaceAllString(err.Error(), "?…"))), nil}
}

// ofStatus is the kind of an answer.
func ofStatus(code int) Kind {
	switch code {
	case http.StatusNotFound:
		return NotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return Unauthorized
	case http.StatusTooManyRequests:
		return TooManyRequests
	default:
		return Unavailable
	}
}

// signed is the part of an address that may be signed.
var signed = regexp.MustCompile(`\?[^\s"]*`)

// refused says that a registry, or anyone who gives the tokens for it, refuses a request.
func refused(host string, answer *errcode.ErrorResponse) string {
	by := host
	if answer.URL != nil && answer.URL.Host != host {
		by = answer.URL.Host + ", to which " + host + " refers,"
	}
	text := fmt.Sprintf("%s answers %d %s", by, answer.StatusCode, http.StatusText(answer.StatusCode))
	if len(answer.Errors) > 0 {
		text += " (" + errclass.Printable(answer.Errors.Error()) + ")"
	}
	if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
		text += ": log in as a user who may read it, such as by docker login " + host
	}
	return text
}

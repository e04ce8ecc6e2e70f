package bundle

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

// explain says what is wrong with a registry, or with what it has sent, and what to do. The
// address of a request is left out: it may be one that a registry has signed.
func explain(ctx context.Context, host, what string, err error) error {
	var slow *slowError
	var stalled *stalledError
	var busy *busyError
	var answer *errcode.ErrorResponse
	var request *url.Error
	switch {
	case errors.As(err, &stalled):
		return stalled
	case errors.As(err, &busy):
		return busy
	case errors.As(context.Cause(ctx), &slow):
		return slow
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fmt.Errorf("%s wants a user and a password: log in, such as by docker login %s", host, host)
	case errors.As(err, &answer):
		return refused(host, answer)
	case errors.Is(err, errdef.ErrNotFound):
		return fmt.Errorf("%s has no %s", host, what)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s is truncated: try again", what)
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData):
		return fmt.Errorf("%s is not what its digest says", what)
	case errors.As(err, &request):
		err = request.Err
	}
	return fmt.Errorf("%s of %s: %s", what, host, errclass.Printable(signed.ReplaceAllString(err.Error(), "?…")))
}

// signed is the part of an address that may be signed.
var signed = regexp.MustCompile(`\?[^\s"]*`)

// refused says that a registry, or whoever gives the tokens for it, refuses a request.
func refused(host string, answer *errcode.ErrorResponse) error {
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
	return errors.New(text)
}

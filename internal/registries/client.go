package registries

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/retry"
)

// Patience is how long a registry is waited for.
type Patience struct {
	Pull     time.Duration // for all that is read at once, such as an artifact
	Stall    time.Duration // without a byte
	Pause    time.Duration // at most, between two attempts
	First    time.Duration // after the first attempt; the next pauses are twice as long each
	Attempts int           // of one request
}

// DefaultPatience is that of programs.
var DefaultPatience = Patience{Pull: 2 * time.Minute, Stall: 30 * time.Second, Pause: 20 * time.Second, First: 500 * time.Millisecond, Attempts: 5}

// Limit bounds the time for all that is read at once. Explain says so of what it ends.
func (p Patience) Limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.Pull, &slowError{p.Pull})
}

// Client repeats what is worth it, and gives up on a registry that sends nothing any more.
func (p Patience) Client() *http.Client {
	return &http.Client{Transport: &retry.Transport{
		Base:   watched{http.DefaultTransport.(*http.Transport).Clone(), p.Stall},
		Policy: func() retry.Policy { return p },
	}}
}

// Retry implements retry.Policy: how long to wait before the next attempt. A registry that asks
// for a longer pause than it is waited for is not asked again.
func (p Patience) Retry(attempt int, answer *http.Response, err error) (time.Duration, error) {
	if err != nil {
		again, err := retry.DefaultPredicate(nil, err)
		if attempt+1 < p.Attempts && (again || errors.Is(err, io.EOF)) {
			return p.backoff(attempt), nil
		}
		return -1, err
	}
	switch code := answer.StatusCode; {
	case code == http.StatusNotImplemented:
		return -1, nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= http.StatusInternalServerError:
	default:
		return -1, nil
	}
	asked := retryAfter(answer.Header)
	if attempt+1 >= p.Attempts || asked > p.Pause {
		return -1, &busyError{host: answer.Request.URL.Host, code: answer.StatusCode, times: attempt + 1, asked: asked}
	}
	return max(asked, p.backoff(attempt)), nil
}

func (p Patience) backoff(attempt int) time.Duration {
	return min(p.First<<attempt, p.Pause)
}

// retryAfter is how long an answer asks to wait. A time is taken against the clock of anyone who
// has sent it.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	until, err1 := http.ParseTime(text)
	now, err2 := http.ParseTime(header.Get("Date"))
	if err1 != nil || err2 != nil {
		return 0
	}
	return max(0, until.Sub(now))
}

// watched gives up on a request whose answer, or the rest of it, does not come.
type watched struct {
	base  http.RoundTripper
	stall time.Duration
}

// RoundTrip implements http.RoundTripper.
func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	stalled := &stalledError{host: r.URL.Host, after: w.stall}
	ctx, cancel := context.WithCancelCause(r.Context())
	b := &body{ctx: ctx, cancel: cancel, timer: time.AfterFunc(w.stall, func() { cancel(stalled) }), stall: w.stall, stalled: stalled}
	answer, err := w.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		err = b.why(err)
		b.end()
		return nil, err
	}
	b.timer.Reset(w.stall)
	b.ReadCloser, answer.Body = answer.Body, b
	return answer, nil
}

// body is the body of an answer that is watched.
type body struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // it ends with the body
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	stall   time.Duration
	stalled *stalledError
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.timer.Stop()
		if err != io.EOF { //nolint:errorlint // a reader gives it as it is
			err = b.why(err)
		}
		return n, err
	}
	b.timer.Reset(b.stall)
	return n, nil
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// why is the reason of an error: that nothing came, if it is.
func (b *body) why(err error) error {
	if errors.Is(context.Cause(b.ctx), b.stalled) {
		return b.stalled
	}
	return err
}

func (b *body) end() {
	b.timer.Stop()
	b.cancel(nil)
}

// Loopback reports whether a host, with or without a port, is this machine.
func Loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

package errclass_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"janus.io/janus/internal/errclass"
)

func TestWhatWasNotAnsweredInTime(t *testing.T) {
	webhook := func(how string) error {
		return status(500, "InternalError", `Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://a.shop.svc:443/?timeout=10s": `+how)
	}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"no answer":                              {context.DeadlineExceeded, true},
		"no answer of the connection":            {&url.Error{Op: "Patch", URL: "https://x", Err: os.ErrDeadlineExceeded}, true},
		"504":                                    {apierrors.NewTimeoutError("request did not complete within the requested timeout", 0), true},
		"a webhook that does not answer":         {webhook("context deadline exceeded"), true},
		"a webhook that answers no handshake":    {webhook("net/http: TLS handshake timeout"), true},
		"a webhook that is nowhere":              {webhook("dial tcp 10.0.0.9:443: i/o timeout"), true},
		"a webhook that is down":                 {webhook("dial tcp 10.0.0.9:443: connect: connection refused"), false},
		"a webhook without endpoints":            {webhook(`no endpoints available for service "a"`), false},
		"a refusal that speaks of a timeout":     {status(500, "", `admission webhook "a" denied the request: context deadline exceeded`), false},
		"a connection that is reset":             {io.ErrUnexpectedEOF, false},
		"a request that was given up":            {context.Canceled, false},
		"an API server that is busy":             {apierrors.NewTooManyRequests("slow down", 1), false},
		"an API server whose storage has failed": {apierrors.NewInternalError(errors.New("etcdserver: leader changed")), false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, errclass.Unanswered(tt.err), "it does not say about what")
			for _, sensitive := range []bool{false, true} {
				err := fmt.Errorf("the step: %w", errclass.Wrap(tt.err, "patch", "Secret shop/a", sensitive))
				object := ""
				if tt.want {
					object = "Secret shop/a"
				}
				assert.Equal(t, object, errclass.Unanswered(err))
				assert.Equal(t, tt.want, errclass.Unanswered(errclass.Wrap(err, "restore", "Secret shop/b", sensitive)) != "", "it is told as something else")
			}
		})
	}
}

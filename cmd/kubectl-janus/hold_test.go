package main

import (
	"bytes"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// holds runs a shell script while a lock of so many seconds is held. The API server cannot
// be reached from one time after the start until another.
func holds(t *testing.T, lasts string, from, until time.Duration, script string) error {
	t.Helper()
	e := harness.New(t)
	s := newSession(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	s.flags.KubeConfig, s.flags.Namespace = &testcluster.Shared(t).Kubeconfig, &e.Namespace
	var away atomic.Bool
	s.flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c = unlimited(rest.CopyConfig(c))
		c.Wrap(func(real http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if away.Load() {
					return nil, errors.New("no route to host")
				}
				return real.RoundTrip(r)
			})
		})
		return c
	})
	time.AfterFunc(from, func() { away.Store(true) })
	time.AfterFunc(until, func() { away.Store(false) })
	cmd := newLocksHold(s)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"configmap/x", "--holder", "me", "--for", lasts, "--", "sh", "-c", script})
	return cmd.ExecuteContext(t.Context())
}

func TestALockOutlivesAnAPIServerThatIsAwayForLessThanItsTime(t *testing.T) {
	err := holds(t, "6s", 1500*time.Millisecond, 4500*time.Millisecond, "sleep 9; exit 3")
	var own *exitError
	require.ErrorAs(t, err, &own)
	require.NoError(t, own.err)
	assert.Equal(t, 3, own.code)
}

func TestACommandIsEndedWhenItsLockMayHaveExpired(t *testing.T) {
	begun := time.Now()
	err := holds(t, "3s", 500*time.Millisecond, 4*time.Second, "sleep 30")
	require.ErrorContains(t, err, "the command was ended: the lock of configmaps ")
	require.ErrorContains(t, err, "could not be renewed for 3s: ")
	require.ErrorContains(t, err, "no route to host")
	assert.Less(t, time.Since(begun), 15*time.Second, "it did not wait for the command")
}

package main

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"janus.io/janus/internal/settings"
	"janus.io/janus/test/harness"
)

var tokens = settings.Settings{SensitiveKinds: []schema.GroupKind{{Kind: "Token", Group: "example.com"}}}

// anyone is a user who has no right but those of every user.
func anyone(t *testing.T, e *harness.Env) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(e.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "anyone"}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// told reads what janusd has told.
func told(t *testing.T, client kubernetes.Interface, namespace string) (settings.Settings, error) {
	t.Helper()
	object, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), settings.Name, metav1.GetOptions{})
	if err != nil {
		return settings.Settings{}, err
	}
	return settings.Of(object.Data)
}

// janusd tells its settings with the rights that it has in its own namespace, no matter who has told
// others there.
func TestJanusdTellsWhichKindsAreSensitive(t *testing.T) {
	e := harness.New(t)
	e.OwnRights()
	for _, flags := range [][]string{{"--sensitive-kinds=Token.example.com"}, {"--locks=namespaces"}, nil} {
		p := startJanusd(t, e, flags...)
		want := settings.Settings{Locks: settings.LeaseOfTarget}
		switch {
		case slices.Contains(flags, "--locks=namespaces"):
			want.Locks = settings.LeaseOfNamespace
		case flags != nil:
			want.SensitiveKinds = tokens.SensitiveKinds
		}
		require.Eventually(t, func() bool {
			got, err := told(t, anyone(t, e), e.Namespace)
			return err == nil && assert.ObjectsAreEqual(want, got)
		}, patience, 50*time.Millisecond, "%v", flags)
		p.signal(syscall.SIGTERM)
		p.exit()
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestSettingsAreToldThoughAReplyIsLost(t *testing.T) {
	e := harness.New(t)
	e.OwnRights()
	config, err := e.AsJanusd(t.Context())
	require.NoError(t, err)
	var lost atomic.Bool
	config.Wrap(func(real http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			answer, err := real.RoundTrip(r)
			if err == nil && r.Method == http.MethodPost && lost.CompareAndSwap(false, true) {
				_ = answer.Body.Close()
				return nil, errors.New("connection reset by peer")
			}
			return answer, err
		})
	})
	own, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	c := &clients{own: own}
	require.ErrorContains(t, c.tellOnce(t.Context(), e.Namespace, settings.Settings{}), "connection reset")
	require.NoError(t, c.tellOnce(t.Context(), e.Namespace, tokens), "it is there")
	require.NoError(t, c.tellOnce(t.Context(), e.Namespace, tokens), "a second replica tells the same")
	got, err := told(t, e.Kube, e.Namespace)
	require.NoError(t, err)
	assert.Equal(t, tokens, got)
}

// An older Role does not let janusd tell anything.
func TestJanusdSaysSoIfItMayNotTellItsSettings(t *testing.T) {
	e := harness.New(t)
	c := &clients{own: anyone(t, e)}
	core, logs := observer.New(zap.InfoLevel)
	c.tell(t.Context(), e.Namespace, tokens, zap.New(core))
	require.Len(t, logs.All(), 1)
	assert.Contains(t, logs.All()[0].Message, "apply the Role janusd-own-namespace of this version")
	_, err := told(t, e.Kube, e.Namespace)
	assert.True(t, apierrors.IsNotFound(err))
}

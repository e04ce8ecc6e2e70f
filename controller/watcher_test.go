package controller_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"janus.io/janus/controller"
	"janus.io/janus/test/harness"
)

// watched is what the informer asks with.
func watched(t *testing.T, e *harness.Env) *cache.ListWatch {
	t.Helper()
	return watchedBy(t, e, e.Config)
}

func watchedBy(t *testing.T, e *harness.Env, who *rest.Config) *cache.ListWatch {
	t.Helper()
	watcher, err := controller.NewWatcher(who)
	require.NoError(t, err)
	return cache.NewListWatchFromClient(watcher, "transactions", e.Namespace, fields.Everything())
}

// Where the API server does not stream what there is, it is listed.
func TestTransactionsAreListedToo(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Submit("one", three)
	list, err := watched(t, e).ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	about, err := meta.ListAccessor(list)
	require.NoError(t, err)
	assert.NotEmpty(t, about.GetResourceVersion())
	items, err := meta.ExtractList(list)
	require.NoError(t, err)
	require.Len(t, items, 1)
	one, err := meta.Accessor(items[0])
	require.NoError(t, err)
	assert.Equal(t, "one", one.GetName())
}

// What there is comes first, then a bookmark that says so, then what happens.
func TestTransactionsAreStreamed(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Submit("one", three)
	stream, err := watched(t, e).WatchWithContext(t.Context(), metav1.ListOptions{
		SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	require.NoError(t, err)
	defer stream.Stop()
	// Bookmarks without the annotation tell only how far the watch is, and come at any time.
	expect := func(want watch.EventType) metav1.Object {
		deadline := time.After(30 * time.Second)
		for {
			select {
			case event := <-stream.ResultChan():
				require.NotEqual(t, watch.Error, event.Type, "%v", event.Object)
				object, err := meta.Accessor(event.Object)
				require.NoError(t, err, "%s", event.Type)
				if event.Type == watch.Bookmark && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "" {
					continue
				}
				require.Equal(t, want, event.Type, "%v", event.Object)
				return object
			case <-deadline:
				require.FailNow(t, "there is no event", want)
				return nil
			}
		}
	}
	assert.Equal(t, "one", expect(watch.Added).GetName())
	assert.Equal(t, "true", expect(watch.Bookmark).GetAnnotations()[metav1.InitialEventsAnnotationKey])
	e.Submit("two", three)
	assert.Equal(t, "two", expect(watch.Added).GetName())
}

// A watch that is too far behind ends with an error that says so, after which all is
// listed again.
func TestAWatchThatIsTooFarBehindSaysSo(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	stream, err := watched(t, e).WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	require.NoError(t, err)
	defer stream.Stop()
	event := <-stream.ResultChan()
	require.Equal(t, watch.Error, event.Type, "%v", event.Object)
	assert.True(t, apierrors.IsResourceExpired(apierrors.FromObject(event.Object)), "%v", event.Object)
}

func TestARefusalSaysWhoMayNot(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	nobody := rest.CopyConfig(e.Config)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
	from := watchedBy(t, e, nobody)
	_, err := from.ListWithContext(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `User "nobody" cannot list resource "transactions"`)
	_, err = from.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `User "nobody" cannot watch resource "transactions"`)
}

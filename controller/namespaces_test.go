package controller_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// changing is a Controller whose namespaces are set by the test; left gets those that it has left.
func changing(t *testing.T, e *harness.Env, p parts) (r *rig, left chan string) {
	t.Helper()
	left = make(chan string, 10)
	p.options = func(o *controller.Options) {
		o.Changing, o.Namespaces, o.Linger = true, nil, 100*time.Millisecond
		o.Left = func(namespace string) { left <- namespace }
	}
	return newRig(t, e, p), left
}

// A namespace that comes is watched at once, and one that goes is not any more.
func TestNamespacesComeAndGo(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	other := e.In(testcluster.Namespace(t))
	r, left := changing(t, e, parts{workers: 2})
	other.Submit("early", three)
	r.start()
	assert.False(t, r.ctl.Synced(), "it is not known yet what is to be run")
	require.NoError(t, r.ctl.SetNamespaces([]string{e.Namespace}, nil))
	e.Submit("one", three)
	assert.Equal(t, api.PhaseCommitted, e.Ended("one").Status.Phase)
	assert.True(t, r.ctl.Synced())
	assert.Zero(t, r.readsOf("early"))

	require.NoError(t, r.ctl.SetNamespaces([]string{e.Namespace, other.Namespace}, nil))
	assert.Equal(t, api.PhaseCommitted, other.Ended("early").Status.Phase, "it was there before")

	require.NoError(t, r.ctl.SetNamespaces([]string{other.Namespace}, nil))
	assert.Equal(t, e.Namespace, <-left)
	e.Submit("two", three)
	other.Submit("three", three)
	assert.Equal(t, api.PhaseCommitted, other.Ended("three").Status.Phase)
	assert.Zero(t, r.readsOf("two"))
	assert.Empty(t, e.Transaction("two").Finalizers)

	require.NoError(t, r.ctl.SetNamespaces([]string{e.Namespace, other.Namespace}, nil))
	assert.Equal(t, api.PhaseCommitted, e.Ended("two").Status.Phase, "it came back")
	require.NoError(t, r.ctl.SetNamespaces(nil, nil))
	assert.ElementsMatch(t, []string{e.Namespace, other.Namespace}, []string{<-left, <-left})
}

// A Transaction that was begun is finished although its namespace leaves, and none is begun there.
// That holds for another process too, which is told of the namespace.
func TestWhatWasBegunInANamespaceThatLeavesIsFinished(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		e := harness.New(t)
		begun, goOn := make(chan struct{}), make(chan struct{})
		stop := sync.OnceFunc(func() { close(begun); <-goOn })
		r, left := changing(t, e, parts{workers: 2, do: func(context.Context, engine.Intent) error { stop(); return nil }})
		require.NoError(t, r.ctl.SetNamespaces([]string{e.Namespace}, nil))
		r.start()
		e.Submit("begun", three)
		<-begun
		require.NoError(t, r.ctl.SetNamespaces(nil, nil))
		e.Submit("later", three)
		if restarts {
			close(goOn)
			r.stop()
			require.False(t, e.Transaction("begun").Status.Phase.Terminal())
			r, left = changing(t, e, parts{workers: 2})
			require.NoError(t, r.ctl.SetNamespaces(nil, []string{e.Namespace}))
			r.start()
		} else {
			select {
			case <-left:
				require.Fail(t, "it has left with a change in flight")
			case <-time.After(300 * time.Millisecond):
			}
			close(goOn)
		}

		assert.Equal(t, api.PhaseCommitted, e.Ended("begun").Status.Phase)
		assert.Equal(t, e.Namespace, <-left)
		assert.Empty(t, e.Transaction("later").Finalizers, "it was not begun")
		assert.Empty(t, e.Transaction("later").Status.Phase)
		r.stop()
	}
}

// It is finished also if the last write of its status fails, before which the finalizer goes.
func TestWhatWasBegunInANamespaceThatLeavesIsFinishedAfterItsFinalizerIsGone(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		e := harness.New(t)
		begun, goOn, failed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		stop, fail := sync.OnceFunc(func() { close(begun); <-goOn }), sync.OnceFunc(func() { close(failed) })
		p := parts{
			workers: 2,
			do:      func(context.Context, engine.Intent) error { stop(); return nil },
			record: func(txn *api.Transaction) error {
				select {
				case <-failed:
					if !restarts {
						return nil
					}
				default:
				}
				if !txn.Status.Phase.Terminal() {
					return nil
				}
				fail()
				return errclass.New(errclass.Unknown, errclass.ServerUnavailable, "write", "Transaction", "the connection was reset")
			},
		}
		r, left := changing(t, e, p)
		require.NoError(t, r.ctl.SetNamespaces([]string{e.Namespace}, nil))
		r.start()
		e.Submit("begun", three)
		<-begun
		require.NoError(t, r.ctl.SetNamespaces(nil, nil))
		close(goOn)
		<-failed
		if restarts {
			select {
			case <-left:
				require.Fail(t, "it has left, and the last phase is not on record")
			case <-time.After(4 * time.Second):
			}
			r.stop()
			require.Equal(t, api.PhaseCommitting, e.Transaction("begun").Status.Phase)
			require.Empty(t, e.Transaction("begun").Finalizers)
			r, left = changing(t, e, parts{workers: 2})
			require.NoError(t, r.ctl.SetNamespaces(nil, []string{e.Namespace}))
			r.start()
		}
		assert.Equal(t, api.PhaseCommitted, e.Ended("begun").Status.Phase)
		assert.Equal(t, e.Namespace, <-left)
		r.stop()
	}
}

// The watch may be behind: the API server has the last word on whether something was begun.
func TestANamespaceIsNotLeftBeforeTheAPIServerSaysSo(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	var mu sync.Mutex
	begun, asked := true, 0
	left := make(chan string, 1)
	r := newRig(t, e, parts{options: func(o *controller.Options) {
		o.Changing, o.Namespaces, o.Linger = true, nil, time.Millisecond
		o.Left = func(namespace string) { left <- namespace }
		o.Begun = func(_ context.Context, namespace string) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, e.Namespace, namespace)
			if asked++; asked == 1 {
				return false, assert.AnError
			}
			return begun, nil
		}
	}})
	require.NoError(t, r.ctl.SetNamespaces(nil, []string{e.Namespace}))
	r.start()
	require.NoError(t, harness.Poll(t.Context(), func(context.Context) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return asked >= 3, nil
	}))
	assert.Empty(t, left)
	mu.Lock()
	begun = false
	mu.Unlock()
	assert.Equal(t, e.Namespace, <-left)
}

// Those that a selector does not select are another janusd's, from the beginning or since their
// labels were changed.
func TestASelectorLimitsWhatIsRun(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	label := func(name, value string) {
		t.Helper()
		patch := `{"metadata":{"labels":{"team":"` + value + `"}}}`
		_, err := e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	begun, goOn := make(chan string), make(chan struct{})
	of := func(team string) *rig {
		selector, err := labels.Parse("team=" + team)
		require.NoError(t, err)
		first := true
		return newRig(t, e, parts{workers: 2, options: func(o *controller.Options) { o.Selector = selector }, do: func(_ context.Context, in engine.Intent) error {
			if in.Transaction().Name == "moved" && team == "a" && first {
				first = false
				begun <- in.Transaction().Name
				<-goOn
			}
			return nil
		}})
	}
	a, b := of("a").start(), of("b")
	e.Submit("nobodys", three)
	e.Submit("bs", three)
	label("bs", "b")
	e.Submit("moved", three)
	label("moved", "a")
	<-begun
	label("moved", "b")
	b.start()
	assert.Equal(t, api.PhaseCommitted, e.Ended("bs").Status.Phase)
	close(goOn)
	assert.Equal(t, api.PhaseCommitted, e.Ended("moved").Status.Phase, "one of the two goes on with it")
	assert.Zero(t, a.readsOf("bs"))
	for _, r := range []*rig{a, b} {
		assert.Zero(t, r.readsOf("nobodys"))
	}
	assert.Empty(t, e.Transaction("nobodys").Finalizers)
}

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// silent records no events.
type silent struct{}

func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

func TestOwnWritesAreNoReasonToLookAgain(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	r := newRig(t, e, parts{}).start()
	e.Submit("first", three)
	txn := e.Ended("first")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	e.Merge("somebody", api.GroupVersion.String()+" Transaction/first", `{"metadata":{"labels":{"a":"b"}}}`)
	// Events arrive in order: what the first one's writes caused has been heard of
	// before the second one is.
	e.Submit("second", three)
	e.Ended("second")
	r.stop()
	assert.Equal(t, 1, r.readsOf("first"), "finalizer, checkpoints and a label are no reason to read it again")
}

func TestADeletionIsAReasonToLook(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	r := newRig(t, e, parts{do: later(time.Hour)}).start()
	e.Submit("deploy", three)
	e.Await("deploy", "waiting", waiting)
	reads := r.readsOf("deploy")
	e.Delete("deploy", metav1.DeletePropagationBackground)
	e.Gone("deploy")
	r.stop()
	assert.Greater(t, r.readsOf("deploy"), reads)
}

// later is a change that the server asks to be tried again after some time.
func later(wait time.Duration) func(context.Context, engine.Intent) error {
	return func(context.Context, engine.Intent) error {
		err := errclass.New(errclass.Retryable, errclass.TooManyRequests, "patch", "ConfigMap a", "too many requests")
		err.RetryAfter = wait
		return err
	}
}

func waiting(t *api.Transaction) bool {
	_, reason, _ := harness.Condition(t, api.ConditionReconciling)
	return t.Status.Phase == api.PhaseCommitting && reason == errclass.TooManyRequests
}

func TestTheGaugeOfRunningTransactionsIsRightAfterARestart(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	r := newRig(t, e, parts{do: later(time.Hour), workers: 2}).start()
	for _, name := range []string{"one", "two"} {
		e.Submit(name, three)
		e.Await(name, "waiting", waiting)
	}
	r.stop()
	e.Submit("three", three)

	// The next process looks at nothing before its first scrape.
	blocked := make(chan struct{})
	next := newRig(t, e, parts{read: func(types.NamespacedName) error { <-blocked; return nil }, workers: 3})
	const header = "# HELP janus_transactions_active Transactions that have not ended, by phase; those whose plan waits for approval left out.\n# TYPE janus_transactions_active gauge\n"
	next.start()
	t.Cleanup(next.stop)
	defer close(blocked)
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), next.ctl.Synced))
	require.NoError(t, testutil.GatherAndCompare(next.registry, strings.NewReader(header+`
janus_transactions_active{phase="Committing"} 2
janus_transactions_active{phase="Pending"} 1
janus_transactions_active{phase="Prepared"} 0
janus_transactions_active{phase="Preparing"} 0
janus_transactions_active{phase="RollingBack"} 0
`), "janus_transactions_active"))
}

func TestAStopFinishesTheStepInHandAndBeginsNoOther(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	begun, release := make(chan struct{}), make(chan struct{})
	var dos, released atomic.Int32
	r := newRig(t, e, parts{do: func(ctx context.Context, _ engine.Intent) error {
		if dos.Add(1) == 1 {
			close(begun)
			<-release
		}
		return ctx.Err()
	}}).start()
	e.Submit("deploy", three)
	<-begun
	stopped := make(chan struct{})
	go func() {
		r.stop()
		assert.Equal(t, int32(1), released.Load(), "it stopped with a step in flight")
		close(stopped)
	}()
	released.Add(1)
	close(release)
	<-stopped
	txn := e.Transaction("deploy")
	done := dos.Load()
	assert.Equal(t, fmt.Sprintf("%d/3", done), txn.Status.Progress, "what was done is on record: %s", harness.Describe(txn))

	newRig(t, e, parts{do: func(context.Context, engine.Intent) error { dos.Add(1); return nil }}).start()
	e.Ended("deploy")
	assert.Equal(t, int32(3), dos.Load(), "each change was made once")
}

func TestATransactionThatCannotBeReadIsTriedAgain(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	var attempts atomic.Int32
	r := newRig(t, e, parts{read: func(types.NamespacedName) error {
		if attempts.Add(1) <= 3 {
			return errors.New("the server is away")
		}
		return nil
	}}).start()
	e.Submit("deploy", three)
	assert.Equal(t, api.PhaseCommitted, e.Ended("deploy").Status.Phase)
	r.stop()
	assert.Equal(t, 4, r.readsOf("deploy"))
}

// An API server in trouble may deny an object for a moment. The watch knows better.
func TestATransactionThatAReadDeniesIsTriedAgain(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	r := newRig(t, harness.New(t), parts{denied: func(types.NamespacedName) bool { return reads.Add(1) < 3 }}).start()
	r.Submit("txn", three)
	r.Ended("txn")
	assert.GreaterOrEqual(t, reads.Load(), int32(3))
	r.Delete("txn", metav1.DeletePropagationBackground)
	r.Gone("txn")
}

// A defect that one Transaction meets is not to end those of others.
func TestAStepThatPanicsIsTriedAgainAndEndsNothingElse(t *testing.T) {
	t.Parallel()
	var does atomic.Int32
	r := newRig(t, harness.New(t), parts{do: func(context.Context, engine.Intent) error {
		if does.Add(1) == 2 {
			panic("a defect")
		}
		return nil
	}}).start()
	r.Submit("txn", three)
	r.Ended("txn")
	assert.GreaterOrEqual(t, does.Load(), int32(4))
}

// The same is true before and after the steps: where the Transaction is read, and what one that is left
// has is released.
func TestAPanicBesideTheStepsEndsNothingElse(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	doing, goOn := make(chan struct{}), make(chan struct{})
	r := newRig(t, harness.New(t), parts{
		read: func(types.NamespacedName) error {
			if n := reads.Add(1); n == 1 || n == 3 {
				panic("a defect")
			}
			return nil
		},
		do: func(context.Context, engine.Intent) error {
			close(doing)
			<-goOn
			return errors.New("the server is away")
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.ctl.Run(ctx) }()
	r.Submit("txn", three)
	<-doing
	cancel()
	close(goOn)
	require.NoError(t, <-ended)
	assert.EqualValues(t, 3, reads.Load(), "the last is for what it held")
}

func TestEventsOfATransaction(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {v: "1"}}`)
	var attempts atomic.Int32
	j := e.Start(harness.WithChanges(func(c engine.Changes) engine.Changes {
		return flaky{Changes: c, attempts: &attempts}
	}))
	txn := e.Run("deploy", `changes: [{name: app, target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {v: "2"}}}]`)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	require.Equal(t, int32(4), attempts.Load())
	events := eventsOf(t, e, "deploy", "Committed")
	j.Stop()

	var got []string
	for _, event := range events {
		if slices.Contains([]string{"Preparing", "Prepared", "Committing"}, event.Reason) {
			continue // On a slow machine they last.
		}
		got = append(got, event.Type+" "+event.Reason+" "+event.Action)
		assert.Nil(t, event.Series, "%s came more than once", event.Reason)
		assert.Equal(t, "Transaction", event.Regarding.Kind)
		assert.Equal(t, txn.UID, event.Regarding.UID)
		assert.NotEmpty(t, event.Note)
		assert.Contains(t, event.ReportingController, "janus")
	}
	assert.ElementsMatch(t, []string{
		"Normal TooManyRequests Transact", "Normal Committed Transact",
	}, got, "one for the end and for what is waited for, none for a retry")
}

// flaky fails a change three times before it is made.
type flaky struct {
	engine.Changes
	attempts *atomic.Int32
}

func (f flaky) Do(ctx context.Context, in engine.Intent) error {
	if f.attempts.Add(1) <= 3 {
		return errclass.New(errclass.Retryable, errclass.TooManyRequests, "patch", "ConfigMap app", "too many requests")
	}
	return f.Changes.Do(ctx, in)
}

// A cause may be longer than the note of an event can be.
func TestATransactionWithALongCauseHasItsEvents(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	var changes strings.Builder
	changes.WriteString("changes:\n")
	for i := range 40 {
		fmt.Fprintf(&changes, "- {target: {apiVersion: example.com/v1, kind: NoSuchKind%d, name: x}, type: Delete}\n", i)
	}
	txn := e.Run("deploy", changes.String())
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.NotEmpty(t, eventsOf(t, e, "deploy", "Failed"))
}

// eventsOf waits for the event with the given reason and returns all there are.
func eventsOf(t *testing.T, e *harness.Env, name, last string) []eventsv1.Event {
	t.Helper()
	var found []eventsv1.Event
	// An event is sent within milliseconds; one that was refused is not sent again.
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	err := harness.Poll(ctx, func(ctx context.Context) (bool, error) {
		list, err := e.Kube.EventsV1().Events(e.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		found = found[:0]
		done := false
		for _, event := range list.Items {
			if event.Regarding.Name == name {
				found = append(found, event)
				done = done || event.Reason == last
			}
		}
		return done, nil
	})
	require.NoError(t, err, "no event %s came; there are %v", last, found)
	return found
}

func TestAStopLeavesNoGoroutine(t *testing.T) {
	// Not parallel: the goroutines of other tests would count.
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {v: "1"}}`)
	before := goleak.IgnoreCurrent()
	j := e.Start()
	e.Run("deploy", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {v: "2"}}}]`)
	j.Stop()
	var leak error
	err := harness.Poll(t.Context(), func(context.Context) (bool, error) {
		// The connections that client-go keeps for later are no leak. (A queue that was
		// shut down notices within half a second.)
		leak = goleak.Find(before,
			goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
			goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"),
			goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
			goleak.IgnoreAnyFunction("net/http.(*http2clientConnReadLoop).run"))
		return leak == nil, nil
	})
	require.NoError(t, err, "%v", leak)
}

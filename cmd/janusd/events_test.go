package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// slow is a sink that takes its time, and keeps what has arrived.
type slow struct {
	takes time.Duration
	fails error // what each request but a patch is answered

	mu      sync.Mutex
	arrived []string
}

func (s *slow) send(ctx context.Context, kind string, event *eventsv1.Event, err error) (*eventsv1.Event, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = append(s.arrived, kind+" "+event.Note)
	return event, err
}

func (s *slow) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.send(ctx, "create", event, s.fails)
}

func (s *slow) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.send(ctx, "update", event, s.fails)
}

func (s *slow) Patch(ctx context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return s.send(ctx, "patch", event, apierrors.NewNotFound(eventsv1.Resource("events"), event.Name))
}

// all is what has arrived by now.
func (s *slow) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.arrived...)
}

// telling records events about versions of an object, stops, and returns what the sink has
// by then, how long the stop took, and how many warnings the log has.
func telling(t *testing.T, s *slow, versions ...string) (arrived []string, took time.Duration, warnings int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		core, said := observer.New(zap.InfoLevel)
		recorder, stop, err := announce(ctx, s, runtime.NewScheme(), zap.New(core))
		require.NoError(t, err)
		cancel() // What is recorded while janusd stops is sent, too.
		for _, version := range versions {
			recorder.Eventf(&corev1.ObjectReference{Kind: "Transaction", Namespace: "shop", Name: "a", ResourceVersion: version},
				nil, corev1.EventTypeNormal, "Committed", "Transact", "%s", version)
		}
		begun := time.Now()
		stop()
		arrived, took, warnings = s.all(), time.Since(begun), said.Len()
		synctest.Wait()
	})
	return arrived, took, warnings
}

// The reason for what this file tests: the broadcaster of client-go sends nothing any more
// when it is shut down, and has no means to wait.
func TestClientGoAloneDropsTheEventsThatItHasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: time.Second}
		broadcaster := events.NewBroadcaster(s)
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, broadcaster.StartRecordingToSinkWithContext(ctx))
		recorder := broadcaster.NewRecorder(runtime.NewScheme(), "janusd")
		for n := range 20 {
			recorder.Eventf(&corev1.ObjectReference{Kind: "Transaction", Namespace: "shop", Name: "a", ResourceVersion: fmt.Sprint(n)},
				nil, corev1.EventTypeNormal, "Committed", "Transact", "%d", n)
		}
		broadcaster.Shutdown()
		cancel()
		synctest.Wait()
		assert.Empty(t, s.all())
	})
}

func TestAStopSendsTheEventsThatWereRecorded(t *testing.T) {
	var versions, want []string
	for n := range 20 {
		versions, want = append(versions, fmt.Sprint(n)), append(want, fmt.Sprintf("create %d", n))
	}
	arrived, took, warnings := telling(t, &slow{takes: time.Second}, versions...)
	assert.ElementsMatch(t, want, arrived)
	assert.Equal(t, time.Second, took)
	assert.Zero(t, warnings)
}

func TestAStopSendsASeriesOfEvents(t *testing.T) {
	arrived, took, _ := telling(t, &slow{takes: time.Second / 2}, "1", "1", "1", "1")
	assert.ElementsMatch(t, []string{"create 1", "patch 1", "create 1"}, arrived)
	assert.Equal(t, time.Second, took, "nothing more is sent of it")
}

func TestAStopWithoutEventsTakesNoTime(t *testing.T) {
	_, took, _ := telling(t, &slow{takes: time.Second})
	assert.Zero(t, took)
}

func TestAStopDoesNotWaitForAnotherAttempt(t *testing.T) {
	arrived, took, _ := telling(t, &slow{takes: time.Second, fails: errors.New("no route")}, "1")
	assert.Equal(t, []string{"create 1"}, arrived)
	assert.Equal(t, time.Second, took)
}

func TestAStopDoesNotWaitForEverForEvents(t *testing.T) {
	arrived, took, warnings := telling(t, &slow{takes: time.Hour}, "1", "2")
	assert.Empty(t, arrived)
	assert.Equal(t, linger, took)
	assert.Equal(t, 1, warnings)
}

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"

	api "janus.io/janus/api/v1alpha1"
)

// eventWriter records events, and knows which have not been sent yet: client-go hands each from
// goroutine to goroutine, and does not wait for any of them when it shuts down.
type eventWriter struct {
	recorder events.EventRecorder
	sink     events.EventSink
	scheme   *runtime.Scheme

	mu      sync.Mutex
	waiting map[occasion]int
	// sent has something in it after one was sent.
	sent chan struct{}
}

// occasion is what client-go tells events apart by. It counts further ones of the same in a
// series: the second is sent as a patch of the first, and those after it minutes later.
type occasion struct {
	regarding                 corev1.ObjectReference
	eventType, reason, action string
}

// announce starts what sends events to the sink. stop waits for those that were recorded
// before, for as long as linger.
func announce(ctx context.Context, sink events.EventSink, scheme *runtime.Scheme, log *zap.Logger) (recorder events.EventRecorder, stop func(), err error) {
	h := &eventWriter{sink: sink, scheme: scheme, waiting: map[occasion]int{}, sent: make(chan struct{}, 1)}
	broadcaster := events.NewBroadcaster(h)
	// Steps in flight are finished after ctx is done, and have something to tell.
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if err := broadcaster.StartRecordingToSinkWithContext(sending); err != nil {
		cancel()
		broadcaster.Shutdown()
		return nil, nil, fmt.Errorf("start the event recorder: %w", err)
	}
	h.recorder = broadcaster.NewRecorder(scheme, "janusd")
	return h, func() {
		if left := h.wait(linger); left > 0 {
			log.Warn("events were dropped", zap.Int("events", left))
		}
		broadcaster.Shutdown()
		cancel()
	}, nil
}

// announce is announce for the API server.
func (c *clients) announce(ctx context.Context, log *zap.Logger) (recorder events.EventRecorder, stop func(), err error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("register the API types: %w", err)
	}
	return announce(ctx, &events.EventSinkImpl{Interface: c.own.EventsV1()}, scheme, log)
}

// Eventf implements events.EventRecorder. An event names the version that kubectl takes for the
// object: kubectl events --for finds no other.
func (h *eventWriter) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	// What nothing can refer to is not recorded either.
	if of, err := reference.GetReference(h.scheme, regarding); err == nil {
		of = of.DeepCopy()
		if of.GroupVersionKind() == api.Kind {
			of.APIVersion = api.BetaVersion.String()
		}
		h.mu.Lock()
		h.waiting[occasion{*of, eventType, reason, action}]++
		h.mu.Unlock()
		regarding = of
	}
	h.recorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// Create implements events.EventSink.
func (h *eventWriter) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	defer h.settle(event)
	return h.sink.Create(ctx, event)
}

// Update implements events.EventSink.
func (h *eventWriter) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	defer h.settle(event)
	return h.sink.Update(ctx, event)
}

// Patch implements events.EventSink.
func (h *eventWriter) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	found, err := h.sink.Patch(ctx, event, data)
	if !apierrors.IsNotFound(err) { // Else it is created at once.
		h.settle(event)
	}
	return found, err
}

// settle notes what a request has told. One that has failed counts: if another attempt may
// help, that comes after ten seconds, and nobody waits for so long.
func (h *eventWriter) settle(event *eventsv1.Event) {
	of := occasion{event.Regarding, event.Type, event.Reason, event.Action}
	h.mu.Lock()
	if h.waiting[of]--; h.waiting[of] <= 0 || event.Series != nil {
		delete(h.waiting, of) // A series has the number of all of them.
	}
	h.mu.Unlock()
	select {
	case h.sent <- struct{}{}:
	default:
	}
}

// wait waits until all events are sent, or for so long, and returns the number of those
// left.
func (h *eventWriter) wait(atMost time.Duration) int {
	over := time.After(atMost)
	for {
		left := h.left()
		if left == 0 {
			return 0
		}
		select {
		case <-h.sent:
		case <-over:
			return left
		}
	}
}

func (h *eventWriter) left() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, waiting := range h.waiting {
		n += waiting
	}
	return n
}

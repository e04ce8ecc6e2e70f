package ui

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// typing is a watch whose objects are made Transactions. watch.Filter would keep what it has
// in flight for ever if anyone who follows stops just then.
type typing struct {
	source watch.Interface
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

func newTyping(source watch.Interface) *typing {
	w := &typing{source: source, events: make(chan watch.Event), done: make(chan struct{})}
	go w.run()
	return w
}

// ResultChan implements watch.Interface.
func (w *typing) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *typing) Stop() {
	w.once.Do(func() {
		close(w.done)
		w.source.Stop()
	})
}

func (w *typing) run() {
	defer close(w.events)
	for event := range w.source.ResultChan() {
		select {
		case w.events <- made(event):
		case <-w.done:
			return
		}
	}
}

// made is an event about a Transaction; what cannot be one is an error.
func made(event watch.Event) watch.Event {
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return event
	}
	t, err := typed(u)
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}
	}
	return watch.Event{Type: event.Type, Object: t}
}

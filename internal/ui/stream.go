package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	api "janus.io/janus/api/v1alpha1"
)

// stream sends all Transactions, then "synced", then each version of one that has changed, in
// the order in which the API server tells it. It ends with the request, or with the watch: a
// browser then asks again, and is told everything again. If anyone who serves the page has
// given the request a deadline, the page is told to ask again at once.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	found, changes, err := h.reader.Follow(ctx)
	if err != nil {
		fail(w, err)
		return
	}
	defer changes.Stop()

	w.Header().Set("Content-Type", "text/event-stream")
	// Some proxies would collect events until there are enough of them.
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	s := &sender{w: w, control: http.NewResponseController(w)}
	for _, t := range found {
		s.send("transaction", summaryOf(t))
	}
	s.send("synced", struct{}{})
	s.flush()
	h.relay(ctx, s, changes)
}

func (h *handler) relay(ctx context.Context, s *sender, changes watch.Interface) {
	heartbeat := time.NewTicker(h.options.Heartbeat)
	defer heartbeat.Stop()
	for s.err == nil {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				s.send("again", struct{}{})
				s.flush()
			}
			return
		case <-heartbeat.C:
			s.write(": alive\n\n")
		case event, open := <-changes.ResultChan():
			if !open {
				return
			}
			t, ok := event.Object.(*api.Transaction)
			switch {
			case event.Type == watch.Error:
				s.send("trouble", map[string]string{"error": apierrors.FromObject(event.Object).Error()})
				s.flush()
				return
			case !ok:
				continue
			case event.Type == watch.Deleted:
				s.send("deleted", summaryOf(t))
			default:
				s.send("transaction", summaryOf(t))
			}
		}
		s.flush()
	}
}

// sender writes server-sent events, and stops at the first that cannot be written.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *sender) send(event string, content any) {
	data, err := json.Marshal(content)
	if err != nil {
		s.err = err
		return
	}
	// JSON has no line breaks, so that one line of data is all of it.
	s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, data))
}

func (s *sender) write(text string) {
	if s.err == nil {
		_, s.err = s.w.Write([]byte(text))
	}
}

func (s *sender) flush() {
	if s.err == nil {
		s.err = s.control.Flush()
	}
}

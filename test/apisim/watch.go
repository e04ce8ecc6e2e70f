package apisim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher is the body of the answer to a watch. Its reader waits for changes.
type watcher struct {
	server    *Server
	ctx       context.Context //nolint:containedctx // it is that of the request whose answer this is
	kind      *kind
	namespace string
	selector  selector
	only      bool // the metadata
	deadline  time.Time

	mu      sync.Mutex
	pending []byte
	ended   bool
	wake    chan struct{}
}

// watch answers a watch: with the changes after a resourceVersion, or with all that
// is there and what comes after.
func (r *request) watch(req *http.Request) *http.Response {
	selected, err := r.selector()
	if err != nil {
		return failed(req, err)
	}
	w := &watcher{
		server: r.Server, ctx: req.Context(), kind: r.kind, namespace: r.namespace, selector: selected,
		only: metadataOnly(req), wake: make(chan struct{}, 1),
	}
	if seconds, err := strconv.Atoi(r.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		w.deadline = r.now().Add(time.Duration(seconds) * time.Second)
	}
	from := r.query.Get("resourceVersion")
	version, err := parseVersion(from)
	switch {
	case err != nil:
		return failed(req, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", from, err)))
	case isTrue(r.query.Get("sendInitialEvents")):
		return failed(req, unmodelled("sendInitialEvents"))
	case version == 0:
		for _, o := range r.table(r.kind).sorted() {
			w.see(Change{Type: watch.Added, New: wrap(o.content), kind: o.kind})
		}
	case version < r.compacted:
		w.send(watch.Error, statusOf(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, r.compacted))))
		w.ended = true
	default:
		for _, c := range r.changes {
			if c.Version > version {
				w.see(c)
			}
		}
	}
	if !w.ended {
		r.watchers = append(r.watchers, w)
	}
	answer := rawAnswer(req, http.StatusOK, nil)
	answer.Body, answer.ContentLength = w, -1
	return answer
}

// tell passes a change on to those who watch.
func (s *Server) tell(c Change) {
	for _, w := range s.watchers {
		w.see(c)
	}
}

// CloseWatches ends every watch, as a real server does after some minutes.
func (s *Server) CloseWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watchers {
		w.end()
	}
	s.watchers = nil
}

// see queues a change if it concerns the watch. An object that comes to be selected
// has been added, for who watches, and one that ceases to be has been deleted.
func (w *watcher) see(c Change) {
	if c.kind != w.kind.stores() || w.namespace != "" && c.New.GetNamespace() != w.namespace {
		return
	}
	if w.kind != c.kind {
		c.New = wrap(converted(c.New.Object, w.kind))
		if c.Old != nil {
			c.Old = wrap(converted(c.Old.Object, w.kind))
		}
	}
	is := c.Type != watch.Deleted && w.selector.matches(c.New.Object)
	was := c.Old != nil && w.selector.matches(c.Old.Object)
	kind, obj := watch.Modified, c.New.Object
	switch {
	case is && !was:
		kind = watch.Added
	case was && !is:
		kind = watch.Deleted
		if c.Type == watch.Modified {
			// The object as it was, with the resourceVersion of what took it out.
			obj = withVersion(c.Old.Object, c.New.GetResourceVersion())
		}
	case !is:
		return
	}
	if w.only {
		obj = partial(obj)
	}
	w.send(kind, obj)
}

func withVersion(obj content, version string) content {
	out := content{}
	for k, v := range obj {
		out[k] = v
	}
	ownMetadata(out)["resourceVersion"] = version
	return out
}

func (w *watcher) send(kind watch.EventType, object any) {
	data, err := json.Marshal(object)
	if err != nil {
		data, _ = json.Marshal(metav1.Status{Status: metav1.StatusFailure, Message: err.Error()})
		kind = watch.Error
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.pending = append(w.pending, `{"type":"`+string(kind)+`","object":`...)
	w.pending = append(append(w.pending, data...), "}\n"...)
	w.notify()
}

// notify wakes the reader up. The caller holds the lock.
func (w *watcher) notify() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.notify()
}

// Read waits for the next change.
func (w *watcher) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		n := copy(p, w.pending)
		w.pending = w.pending[n:]
		ended := w.ended
		w.mu.Unlock()
		if n > 0 || len(p) == 0 {
			return n, nil
		}
		if ended {
			return 0, io.EOF
		}
		if err := w.wait(); err != nil {
			return 0, err
		}
	}
}

func (w *watcher) wait() error {
	var over <-chan time.Time
	if !w.deadline.IsZero() {
		timer := time.NewTimer(w.deadline.Sub(w.server.now()))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-w.wake:
	case <-over:
		w.end()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	return nil
}

// Close ends the watch.
func (w *watcher) Close() error {
	w.end()
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.watchers = slices.DeleteFunc(w.server.watchers, func(other *watcher) bool { return other == w })
	return nil
}

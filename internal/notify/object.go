package notify

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"janus.io/janus/internal/errclass"
)

// object is one that is watched.
type object struct {
	of     Object
	cancel context.CancelFunc
	// waiters are those who wait for it, in the order in which they came.
	waiters []types.NamespacedName
	state   state
	// last is when something happened to it that was told.
	last time.Time
	// holder is who holds it, if it is a lock, and tentative is set if it may release it at any time.
	holder    types.NamespacedName
	tentative bool
}

type state int

const (
	// opening is the state of an object whose watch is about to begin. All who wait for it are woken
	// when it has begun, or cannot.
	opening state = iota
	watching
	// failed is the state of an object that cannot be watched, as far as is known.
	failed
)

const (
	// gather is for how long what happens is gathered when a watch has begun: it tells first of what
	// is there.
	gather = 20 * time.Millisecond
	// openTime is how long a watch may take to begin.
	openTime = 15 * time.Second
	// silence is how long a watch may tell nothing. The API server sends a bookmark every minute.
	silence = 3 * time.Minute
	// pauses after which a watch that could not begin, or has ended at once, is tried again; the
	// first is doubled up to the second. refusedPause is after a refusal, which lasts.
	firstPause   = time.Second
	longestPause = time.Minute
	refusedPause = 5 * time.Minute
)

func (o *object) join(name types.NamespacedName) {
	if !slices.Contains(o.waiters, name) {
		o.waiters = append(o.waiters, name)
	}
}

func (o *object) leave(name types.NamespacedName) {
	if n := slices.Index(o.waiters, name); n >= 0 {
		o.waiters = slices.Delete(o.waiters, n, n+1)
	}
}

// follow watches an object until ctx is done. A watch that has ended is begun again.
func (w *Watches) follow(ctx context.Context, o *object) {
	pause := firstPause
	for ctx.Err() == nil {
		began := w.Clock.Now()
		stream, err := w.opened(ctx, o.of)
		if err == nil {
			w.begun(o)
			w.read(ctx, o, stream)
			stream.Stop()
			if w.Clock.Since(began) > longestPause {
				w.lost(o, opening)
				pause = firstPause
				continue
			}
		}
		w.lost(o, failed)
		if refused(err) {
			pause = refusedPause
		}
		w.sleep(ctx, pause)
		pause = min(2*pause, max(longestPause, pause))
	}
}

// opened begins to watch an object, or gives up on it when that takes too long.
func (w *Watches) opened(ctx context.Context, of Object) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	late := w.Clock.AfterFunc(openTime, cancel)
	stream, err := w.Open(ctx, of)
	if !late.Stop() && err == nil {
		stream.Stop()
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &cancelled{stream, cancel}, nil
}

// cancelled is a watch whose request ends with it.
type cancelled struct {
	watch.Interface
	cancel context.CancelFunc
}

func (c *cancelled) Stop() {
	c.cancel()
	c.Interface.Stop()
}

// refused reports whether a watch is not possible, as long as nobody grants a right or installs a
// kind.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || errclass.ClassOf(err) == errclass.Terminal
}

// begun notes that an object is watched. What has happened before nobody has told.
func (w *Watches) begun(o *object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.state, o.last = watching, w.Clock.Now()
	for _, name := range o.waiters {
		w.wakeAfter(name, gather, o)
	}
}

// lost notes that an object is not watched any more.
func (w *Watches) lost(o *object, next state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended(o, next)
}

// ended is lost for who has the mutex. Who waits for the object has to look by himself if it cannot be
// watched.
func (w *Watches) ended(o *object, next state) {
	before := o.state
	if o.state = next; next != failed || before == failed {
		return
	}
	for _, name := range o.waiters {
		w.wakeAfter(name, 0, nil)
	}
}

// read tells of what happens until the watch ends.
func (w *Watches) read(ctx context.Context, o *object, stream watch.Interface) {
	quiet := w.Clock.NewTimer(silence)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-quiet.C():
			return
		case event, ok := <-stream.ResultChan():
			if !ok || event.Type == watch.Error {
				return
			}
			resetTimer(quiet)
			if event.Type != watch.Bookmark {
				w.happened(o)
			}
		}
	}
}

func resetTimer(t clock.Timer) {
	if !t.Stop() {
		select {
		case <-t.C():
		default:
		}
	}
	t.Reset(silence)
}

// happened tells those who wait for an object.
func (w *Watches) happened(o *object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o.last = w.Clock.Now()
	for _, name := range o.waiters {
		w.wakeAfter(name, 0, o)
	}
}

func (w *Watches) sleep(ctx context.Context, while time.Duration) {
	timer := w.Clock.NewTimer(while)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

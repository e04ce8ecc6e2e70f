package openapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"janus.io/janus/internal/errclass"
)

// indexLife is how long the index of all schemas is taken to hold. It bounds how
// late a schema that has changed is seen; the API server itself takes about a
// second to publish it. To read the index is one small request.
const indexLife = 2 * time.Second

// Patience is how long a kind that is served without a schema is taken to be one whose schema
// is not published yet, as after its CRD was made or an API server has started: about a second,
// and some seconds on a server that is busy.
const Patience = 10 * time.Second

// errNoSchema is in the chain of an error that says why a kind has no schema.
var errNoSchema = errors.New("no schema")

// errUnusable says that there is a schema, which will not do.
var errUnusable = fmt.Errorf("%w that we can use", errNoSchema)

// Types returns the structured-merge-diff types of the kinds that a cluster serves.
// Its methods may be called concurrently.
type Types struct {
	client   openapi.Client
	clock    clock.PassiveClock
	log      *zap.Logger
	patience time.Duration
	// flights joins those who ask for the same thing at the same time.
	flights singleflight.Group

	mu     sync.Mutex
	latest index
	// documents are the parsed schemas. That of a GroupVersion which the index
	// does not name any more is kept: an API server that has just started may
	// not know all of them yet.
	documents map[schema.GroupVersion]published
	// without are the kinds that were found to have no schema.
	without map[schema.GroupVersionKind]lack
}

// lack is a schema that is missing.
type lack struct {
	since time.Time
	said  bool
}

// New makes a Types that has read nothing yet. The client must not keep answers
// by itself, as that of a cached discovery client does. Requests do not end with
// the context of those who wait for them, so the client should have a timeout.
// Of what has no schema there is an error as long as patience lasts.
func New(client openapi.Client, clock clock.PassiveClock, log *zap.Logger, patience time.Duration) *Types {
	return &Types{
		client: client, clock: clock, log: log, patience: patience,
		documents: map[schema.GroupVersion]published{},
		without:   map[schema.GroupVersionKind]lack{},
	}
}

// Of returns the type of a kind. A schema that changes is seen at the latest two
// seconds after the API server has published it, and a kind that is new to us as
// soon as it has. Where the cluster publishes no schema for the kind, or none that
// can be converted, the type is deduced from values: each list is then one
// value. That is said once per kind in a log line. An API server that does not
// answer is an error of class unknown or retryable.
//
// For some seconds after a CRD has been made, and after an API server has started, its
// kinds are served without a schema being published. A kind that was seen before keeps
// its type meanwhile; of one that was not there is an error of class retryable, as long
// as the patience lasts, and after that it is deduced.
//
// Parse objects with typed.AllowDuplicates. The API server refuses two elements
// of one key in what is applied, but stores them for those who create or update;
// without the option such an object could not be parsed at all.
func (t *Types) Of(ctx context.Context, gvk schema.GroupVersionKind) (typed.ParseableType, error) {
	now := t.clock.Now()
	found, err := t.look(ctx, gvk, now.Add(-indexLife))
	if t.outdated(gvk, err) {
		found, err = t.look(ctx, gvk, now)
	}
	switch {
	case !errors.Is(err, errNoSchema):
		t.found(gvk, err)
		return found, errclass.Wrap(err, readSchema, gvk.String(), false)
	case !errors.Is(err, errUnusable) && t.waits(gvk, now):
		return found, errclass.New(errclass.Retryable, errclass.KindNotFound, readSchema, gvk.String(), "waiting until the API server publishes it: %w", err)
	}
	t.say(gvk, err)
	return typed.DeducedParseableType, nil
}

const readSchema = "read the schema of"

// look looks a kind up by an index that was asked for at the time given or later.
func (t *Types) look(ctx context.Context, gvk schema.GroupVersionKind, notBefore time.Time) (typed.ParseableType, error) {
	paths, err := t.paths(ctx, notBefore)
	if err != nil {
		return typed.ParseableType{}, fmt.Errorf("read the index of all schemas: %w", err)
	}
	d, err := t.document(ctx, gvk.GroupVersion(), paths)
	if err != nil {
		return typed.ParseableType{}, err
	}
	return d.of(gvk)
}

// outdated reports whether a fresh index might heal the error. A kind that is
// known to have no schema waits until the index is read anyway.
func (t *Types) outdated(gvk schema.GroupVersionKind, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Is(err, errMoved) || errors.Is(err, errNoSchema) && !t.without[gvk].said
}

// found forgets that a kind had no schema, once it has one.
func (t *Types) found(gvk schema.GroupVersionKind, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.without, gvk)
	}
}

// waits reports whether the schema of a kind may still come.
func (t *Types) waits(gvk schema.GroupVersionKind, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.without[gvk]
	if !ok {
		l = lack{since: now}
		t.without[gvk] = l
	}
	return !l.said && now.Sub(l.since) < t.patience
}

// say logs that a kind has no schema, unless that has been said.
func (t *Types) say(gvk schema.GroupVersionKind, reason error) {
	t.mu.Lock()
	l := t.without[gvk]
	t.without[gvk] = lack{l.since, true}
	t.mu.Unlock()
	if !l.said {
		t.log.Info("the cluster publishes no schema of a kind that we can use; each of its lists is compared as a whole",
			zap.Stringer("kind", gvk), zap.String("reason", reason.Error()))
	}
}

package openapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
)

// errMoved says that the index names a document that is not there.
var errMoved = errors.New("the schema is not where the index says")

// index says where the document of each GroupVersion is.
type index struct {
	asked time.Time
	paths map[string]openapi.GroupVersion
}

// published is a document and the URL that it was read from, which carries a
// hash of the content.
type published struct {
	url      string
	document *document
}

// paths returns an index that was asked for at the time given or later.
func (t *Types) paths(ctx context.Context, notBefore time.Time) (map[string]openapi.GroupVersion, error) {
	if paths := t.cachedPaths(notBefore); paths != nil {
		return paths, nil
	}
	return join(ctx, &t.flights, "index", func() (map[string]openapi.GroupVersion, error) {
		// Another flight may have ended since we looked.
		if paths := t.cachedPaths(notBefore); paths != nil {
			return paths, nil
		}
		asked := t.clock.Now()
		paths, err := t.client.Paths()
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.latest = index{asked, paths}
		return paths, nil
	})
}

func (t *Types) cachedPaths(notBefore time.Time) map[string]openapi.GroupVersion {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latest.asked.Before(notBefore) {
		return nil
	}
	return t.latest.paths
}

// document returns the document of a GroupVersion, and reads it only if the index
// names another than the one that we have.
func (t *Types) document(ctx context.Context, gv schema.GroupVersion, paths map[string]openapi.GroupVersion) (*document, error) {
	at, ok := paths[pathOf(gv)]
	if !ok {
		if d := t.cachedDocument(gv, ""); d != nil {
			return d, nil
		}
		return nil, fmt.Errorf("%w: none is published of %s", errNoSchema, gv)
	}
	url := at.ServerRelativeURL()
	if d := t.cachedDocument(gv, url); d != nil {
		return d, nil
	}
	return join(ctx, &t.flights, url, func() (*document, error) {
		if d := t.cachedDocument(gv, url); d != nil {
			return d, nil
		}
		d, err := fetch(at)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.documents[gv] = published{url, d}
		return d, nil
	})
}

// cachedDocument returns the document of a GroupVersion that was read from the URL,
// or from any if that is empty.
func (t *Types) cachedDocument(gv schema.GroupVersion, url string) *document {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cached := t.documents[gv]; url == "" || cached.url == url {
		return cached.document
	}
	return nil
}

func fetch(at openapi.GroupVersion) (*document, error) {
	data, err := at.Schema(runtime.ContentTypeJSON)
	switch {
	case apierrors.IsNotFound(err):
		// The cause is left out: it would be taken for an object that is not there.
		return nil, errMoved
	case err != nil:
		return nil, err
	case len(data) == 0:
		// What kube-openapi answers for a GroupVersion that is gone, with code 200.
		return nil, errMoved
	}
	return parse(data)
}

// pathOf is what the index calls a GroupVersion.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

// join does something once for all who ask for it at the same time, and waits for
// it no longer than the context lasts.
func join[T any](ctx context.Context, flights *singleflight.Group, key string, do func() (T, error)) (T, error) {
	var none T
	select {
	case done := <-flights.DoChan(key, func() (any, error) { return do() }):
		if done.Err != nil {
			return none, done.Err
		}
		return done.Val.(T), nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

package main

import (
	"context"
	"fmt"
	"net/http"

	"janus.io/janus/internal/ui"
	"janus.io/janus/internal/wiring/look"
	"janus.io/janus/revision"
)

// pagePath is where the page is, and what its viewers must be allowed to get.
const pagePath = "/ui"

// page makes the page that shows Transactions, which is up to date until ctx is done; nil
// without --ui. The controller's own informers do not know enough for it.
func page(ctx context.Context, o options, c *clients) (http.Handler, error) {
	if !o.ui {
		return nil, nil
	}
	reader, err := ui.NewShared(c.watcher, c.dynamic, c.own, o.watch.names)
	if err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	// What changes have changed is for those who may read the before-images: they have kubectl janus ui.
	handler, err := ui.Handler(reader, ui.Options{LeaseOf: look.LeaseOf(o.namespace), History: reader.Bounded(look.Revisions{Store: revision.NewStore(c.own)})})
	if err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	go reader.Run(ctx)
	return ui.Under(pagePath, handler), nil
}

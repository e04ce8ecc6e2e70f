package apisim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// watching is a watch of a kind on both servers.
type watching struct {
	seed    uint64
	subject subject
	end     operation
	cancel  context.CancelFunc
	events  map[*side]*json.Decoder
	bodies  []io.Closer
}

// watch begins to watch two kinds: all objects of one, those with a label of the other.
func (p *pair) watch(q *sequence) []*watching {
	p.t.Helper()
	var out []*watching
	for i := range 2 {
		s := q.subject()
		ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
		w := &watching{seed: q.seed, subject: s, cancel: cancel, events: map[*side]*json.Decoder{}}
		collection := s.collection(p.namespace)
		query := url.Values{"watch": {"true"}}
		if i == 1 {
			query.Set("labelSelector", fmt.Sprintf("app=x,seq=%d", q.seed))
		}
		for _, at := range []*side{p.real, p.model} {
			list := at.send(p.t, operation{method: http.MethodGet, path: collection, query: "limit=1"})
			version, _ := list.raw.(object)["metadata"].(object)["resourceVersion"].(string)
			query.Set("resourceVersion", version)
			resp, _ := at.open(ctx, p.t, operation{method: http.MethodGet, path: collection, query: query.Encode()}) //nolint:bodyclose // same closes it
			require.Equal(p.t, http.StatusOK, resp.StatusCode)
			w.events[at] = json.NewDecoder(resp.Body)
			w.bodies = append(w.bodies, resp.Body)
		}
		// The watch has seen everything when it has seen this object.
		spec := map[string]any{}
		switch s.kind {
		case "Sprocket":
			spec["teeth"] = 5
		case "Transaction":
			spec = txn(&maker{Rand: q.Rand})["spec"].(object)
			spec["changes"].([]any)[0].(object)["type"] = "Delete"
		}
		name := fmt.Sprintf("end%d-%d", i, q.seed)
		obj := object{"apiVersion": s.apiVersion, "kind": s.kind, "metadata": object{"name": name, "labels": object{"app": "x", "seq": fmt.Sprint(q.seed)}}, "spec": spec}
		w.end = operation{method: http.MethodPost, path: collection, contentType: asJSON, agent: "tester", body: func(*side) any { return obj }}
		out = append(out, w)
	}
	return out
}

// same reads what has been seen and compares it.
func (w *watching) same(p *pair) bool {
	p.t.Helper()
	defer func() {
		w.cancel()
		for _, body := range w.bodies {
			_ = body.Close()
		}
	}()
	if !p.both(fmt.Sprintf("seed %d, end of a watch", w.seed), w.end) {
		return false
	}
	want, got := w.read(p, p.real), w.read(p, p.model)
	return assert.Equal(p.t, encoded(want), encoded(got), "seed %d: what is seen of %s differs", w.seed, w.subject.resource)
}

func (w *watching) read(p *pair, at *side) []any {
	p.t.Helper()
	var out []any
	for {
		var raw json.RawMessage
		require.NoError(p.t, w.events[at].Decode(&raw), "%s: %d events", at.name, len(out))
		var event object
		require.NoError(p.t, utiljson.Unmarshal(raw, &event))
		name, _ := metadataOf(event["object"].(object))["name"].(string)
		if !strings.HasSuffix(name, fmt.Sprintf("-%d", w.seed)) && !strings.HasPrefix(name, fmt.Sprintf("generated-%d-", w.seed)) {
			continue
		}
		out = append(out, at.comparable(event))
		if strings.HasPrefix(name, "end") {
			return out
		}
	}
}

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/ui"
	"janus.io/janus/test/harness"
)

// withPage has the page served, on a port of our own.
var withPage = append([]string{"--ui"}, secure...)

// visitor is one who asks for the page.
type visitor struct {
	t      *testing.T
	client *http.Client
	base   string
	// admit puts into a request what the visitor has to be let in.
	admit func(*http.Request)
}

func visit(t *testing.T, p *process, admit func(*http.Request)) *visitor {
	t.Helper()
	addr, _ := p.await("serving metrics")["address"].(string)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificate is self-signed
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &visitor{t, client, "https://" + addr, admit}
}

func nobody(*http.Request) {}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// typed is what a browser makes of a token that is typed where it asks for a password.
func typed(token string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("me", token) }
}

// reply is an answer of which the body has not been read.
type reply struct {
	StatusCode int
	Header     http.Header
	Body       io.Reader
}

func (v *visitor) ask(path string) reply {
	v.t.Helper()
	// A stream that should have been refused has no end.
	ctx, cancel := context.WithTimeout(v.t.Context(), 2*patience)
	v.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	require.NoError(v.t, err)
	v.admit(r)
	answer, err := v.client.Do(r)
	require.NoError(v.t, err)
	v.t.Cleanup(func() { _ = answer.Body.Close() })
	return reply{answer.StatusCode, answer.Header, answer.Body}
}

func (v *visitor) get(path string) (code int, body string) {
	v.t.Helper()
	answer := v.ask(path)
	text, err := io.ReadAll(answer.Body)
	require.NoError(v.t, err)
	return answer.StatusCode, string(text)
}

// admitted waits until the page is served: a role takes effect some moments after it is bound.
func (v *visitor) admitted() {
	v.t.Helper()
	require.Eventually(v.t, func() bool {
		code, _ := v.get("/ui/api/transactions")
		return code == http.StatusOK
	}, patience, 100*time.Millisecond)
}

var parts = []string{"/ui", "/ui/", "/ui/page.js", "/ui/api/transactions", "/ui/api/transactions/a/b", "/ui/api/stream"}

func TestThereIsNoPageAndNoWatchForItUnlessItIsAskedFor(t *testing.T) {
	e := newEnv(t)
	viewer := token(t, e, "viewer", "/metrics", "/ui")
	for _, c := range []struct {
		args    []string
		watches int64
	}{{secure, 1}, {withPage, 2}} {
		var watches atomic.Int64
		g := newGate(t, func(r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/transactions") && r.URL.Query().Get("watch") != "" {
				watches.Add(1)
			}
			return false
		})
		p := startWith(t, g.kubeconfig, e.Namespace, c.args...)
		p.await("watching Transactions")
		v := visit(t, p, bearer(viewer))
		require.Eventually(t, func() bool {
			code, _ := v.get("/metrics")
			return code == http.StatusOK
		}, patience, 100*time.Millisecond)
		e.Until("the Transactions are watched", func() bool { return watches.Load() >= c.watches })
		assert.Equal(t, c.watches, watches.Load())
		for _, path := range parts {
			answer := v.ask(path)
			assert.Equal(t, c.watches == 1 || strings.HasSuffix(path, "/a/b"), answer.StatusCode == http.StatusNotFound, "%s: %d", path, answer.StatusCode)
		}
	}
}

func TestThePageIsForThoseWhoMayGetIt(t *testing.T) {
	e := newEnv(t)
	scraper, viewer := token(t, e, "scraper", "/metrics", "/ui/", "/ui/*"), token(t, e, "viewer", "/ui")
	other := newEnv(t)
	other.Submit("elsewhere", changes)
	mayShow(t, e)
	p := startJanusd(t, e, withPage...)
	e.Submit("release-2", changes)
	committed(t, e, "release-2")

	admitted := visit(t, p, bearer(viewer))
	admitted.admitted()
	for _, path := range parts {
		answer := visit(t, p, nobody).ask(path)
		assert.Equal(t, http.StatusUnauthorized, answer.StatusCode, path)
		assert.Contains(t, strings.Join(answer.Header.Values("WWW-Authenticate"), "\n"), "Basic realm=")
		for _, admit := range []func(*http.Request){bearer("made-up"), typed("made-up")} {
			code, _ := visit(t, p, admit).get(path)
			assert.Equal(t, http.StatusUnauthorized, code, path)
		}
		code, body := visit(t, p, bearer(scraper)).get(path)
		assert.Equal(t, http.StatusForbidden, code, path)
		assert.Equal(t, "system:serviceaccount:"+e.Namespace+":scraper may not get /ui: bind the ClusterRole janus-ui-viewer\n", body)
	}
	code, _ := admitted.get("/metrics")
	assert.Equal(t, http.StatusForbidden, code, "who may see the page may not read the metrics for that")
	code, _ = visit(t, p, typed(viewer)).get("/metrics")
	assert.Equal(t, http.StatusUnauthorized, code, "metrics are for programs")

	for _, v := range []*visitor{admitted, visit(t, p, typed(viewer))} {
		answer := v.ask("/ui")
		assert.Equal(t, http.StatusFound, answer.StatusCode)
		assert.Equal(t, "ui/", answer.Header.Get("Location"))
		answer = v.ask("/ui/")
		assert.Equal(t, http.StatusOK, answer.StatusCode)
		assert.Contains(t, answer.Header.Get("Content-Security-Policy"), "default-src 'self'")
		for path, part := range map[string]string{"/ui/": "<title>Janus", "/ui/page.css": "--ground", "/ui/page.js": "EventSource"} {
			code, body := v.get(path)
			assert.Equal(t, http.StatusOK, code, path)
			assert.Contains(t, body, part)
		}
	}
	var list []ui.Summary
	_, body := admitted.get("/ui/api/transactions")
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.Len(t, list, 1, "that of the other namespace is not shown: %s", body)
	assert.Equal(t, "release-2 Committed", list[0].Name+" "+list[0].Phase)
	var whole ui.Detail
	code, body = admitted.get("/ui/api/transactions/" + e.Namespace + "/release-2")
	require.Equal(t, http.StatusOK, code, body)
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	assert.Empty(t, whole.Unread)
	assert.NotEmpty(t, whole.Items)
	code, body = admitted.get("/ui/api/transactions/" + other.Namespace + "/elsewhere")
	assert.Equal(t, http.StatusNotFound, code, body)
	assert.Contains(t, body, "not among those that are shown")
}

// mayShow gives janusd in the namespace of the test what deploy/ui gives it where it runs.
func mayShow(t *testing.T, e *harness.Env) {
	t.Helper()
	e.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: janusd-page}
rules:
- {apiGroups: [""], resources: [events], verbs: [list]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: janusd-page}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: janusd-page}
subjects: [{kind: ServiceAccount, name: janusd, namespace: ` + harness.SystemNamespace + `}]
`)
	require.NoError(t, e.AwaitRight(t.Context(), harness.Identity, authzv1.ResourceAttributes{Namespace: e.Namespace, Verb: "list", Resource: "events"}))
}

// following reads the stream until it tells of a Transaction in a phase, or to its end.
func following(t *testing.T, stream *bufio.Scanner, name string, phase api.Phase) bool {
	t.Helper()
	for stream.Scan() {
		var s ui.Summary
		data, found := strings.CutPrefix(stream.Text(), "data: ")
		if !found {
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(data), &s))
		if s.Name == name && s.Phase == string(phase) {
			return true
		}
	}
	return false
}

func TestAStreamFollowsAndEndsWithJanusd(t *testing.T) {
	e := newEnv(t)
	viewer := token(t, e, "viewer", "/ui")
	g := newGate(t, patchOf("none"))
	p := startWith(t, g.kubeconfig, e.Namespace, withPage...)
	v := visit(t, p, typed(viewer))
	v.admitted()
	answer := v.ask("/ui/api/stream")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	assert.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	stream := bufio.NewScanner(answer.Body)
	e.Submit("release-2", changes)
	require.True(t, following(t, stream, "release-2", api.PhaseCommitting), "the stream has ended: %v", stream.Err())
	require.True(t, following(t, stream, "release-2", api.PhaseCommitted), "the stream has ended: %v", stream.Err())

	p.signal(syscall.SIGTERM)
	for stream.Scan() {
		assert.NotContains(t, stream.Text(), "trouble")
	}
	require.NoError(t, stream.Err(), "it ends in order, and is not cut off")
	assert.Equal(t, 0, p.exit())
}

func TestAStreamEndsWhenTheAPIServerIsAway(t *testing.T) {
	e := newEnv(t)
	viewer := token(t, e, "viewer", "/ui")
	g := newGate(t, patchOf("none"))
	p := startWith(t, g.kubeconfig, e.Namespace, withPage...)
	v := visit(t, p, bearer(viewer))
	v.admitted()
	stream := bufio.NewScanner(v.ask("/ui/api/stream").Body)
	g.cut.Store(true)
	var last string
	for stream.Scan() {
		if stream.Text() != "" {
			last = stream.Text()
		}
	}
	assert.Contains(t, last, "what is shown may be old")
	code, _ := v.get("/ui/api/stream")
	assert.Equal(t, http.StatusBadGateway, code)
}

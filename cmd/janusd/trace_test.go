package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector keeps the spans that are sent to it, after refusing as often as it is told.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	refuse  int
	spans   []*tracev1.Span
	service map[string]string
	paths   []string
}

func newCollector(t *testing.T, refuse int) *collector {
	t.Helper()
	c := &collector{refuse: refuse, service: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.paths = append(c.paths, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type"))
		body, err := io.ReadAll(r.Body)
		var data tracev1.TracesData
		if err != nil || proto.Unmarshal(body, &data) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if c.refuse > 0 {
			c.refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		for _, resource := range data.GetResourceSpans() {
			for _, a := range resource.GetResource().GetAttributes() {
				c.service[a.GetKey()] = a.GetValue().GetStringValue()
			}
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) received() []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

func attribute(s *tracev1.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

func TestATransactionIsTraced(t *testing.T) {
	e := newEnv(t)
	c := newCollector(t, 1)
	p := startJanusd(t, e, "--tracing-endpoint="+c.URL)
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
	uid := string(e.Transaction("deploy").UID)
	require.Eventually(t, func() bool { return len(c.received()) > 0 }, patience, 50*time.Millisecond, "what is refused is sent again")
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.exit())

	assert.Equal(t, []string{"POST /v1/traces application/x-protobuf", "POST /v1/traces application/x-protobuf"}, c.paths)
	assert.Equal(t, "janusd", c.service["service.name"])
	spans := c.received()
	require.Len(t, spans, 3)
	root := spans[0]
	assert.Equal(t, strings.ReplaceAll(uid, "-", ""), hex.EncodeToString(root.GetTraceId()))
	assert.Equal(t, "Committed", attribute(root, "janus.transaction.phase"))
	assert.Equal(t, tracev1.Status_STATUS_CODE_UNSET, root.GetStatus().GetCode())
	assert.GreaterOrEqual(t, len(root.GetEvents()), 3)
	for i, span := range spans[1:] {
		assert.Equal(t, root.GetSpanId(), span.GetParentSpanId())
		assert.Equal(t, []string{"a", "b"}[i], attribute(span, "janus.target.name"))
		assert.Equal(t, "seen", attribute(span, "janus.item.times"))
		assert.Less(t, span.GetStartTimeUnixNano(), span.GetEndTimeUnixNano())
		assert.GreaterOrEqual(t, span.GetStartTimeUnixNano(), root.GetStartTimeUnixNano())
		assert.LessOrEqual(t, span.GetEndTimeUnixNano(), root.GetEndTimeUnixNano())
	}
}

// What is not sent yet when janusd is told to stop is sent before it goes.
func TestTracesAreSentBeforeJanusdGoes(t *testing.T) {
	e := newEnv(t)
	c := newCollector(t, 1000)
	p := startJanusd(t, e, "--tracing-endpoint="+c.URL)
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.paths) > 0
	}, patience, 10*time.Millisecond)
	c.mu.Lock()
	c.refuse = 0
	c.mu.Unlock()
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.exit())
	assert.Len(t, c.received(), 3)
}

// A collector that is not there holds nobody up.
func TestWithoutACollectorTransactionsGoOn(t *testing.T) {
	e := newEnv(t)
	p := startJanusd(t, e, "--tracing-endpoint=http://127.0.0.1:1")
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
	began := time.Now()
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.exit())
	assert.Less(t, time.Since(began), 20*time.Second)
}

func TestTracesAreOffByDefault(t *testing.T) {
	e := newEnv(t)
	p := startJanusd(t, e)
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
	assert.Empty(t, p.entries("tracing Transactions"))
}

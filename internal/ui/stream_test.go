package ui

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	api "janus.io/janus/api/v1alpha1"
)

// listening is one who reads a stream.
type listening struct {
	lines  *bufio.Scanner
	cancel context.CancelFunc
	served chan struct{}
}

func listen(t *testing.T, g Reader, heartbeat time.Duration) *listening {
	t.Helper()
	return listenFor(t, g, heartbeat, time.Hour)
}

// listenFor reads one that is served for so long.
func listenFor(t *testing.T, g Reader, heartbeat, lasting time.Duration) *listening {
	t.Helper()
	h, err := Handler(g, Options{Heartbeat: heartbeat})
	require.NoError(t, err)
	served := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		ctx, cancel := context.WithTimeout(r.Context(), lasting)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/stream", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	assert.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	return &listening{bufio.NewScanner(answer.Body), cancel, served}
}

// next returns the next event in one line: its name, and the name of the Transaction.
func (l *listening) next() string {
	event := ""
	for l.lines.Scan() {
		line := l.lines.Text()
		if line == "" {
			return event
		}
		if _, rest, found := strings.Cut(line, `"name":"`); found {
			line, _, _ = strings.Cut(rest, `"`)
			line = " " + line
		}
		event += line
	}
	return "end"
}

func (l *listening) ended(t *testing.T) {
	t.Helper()
	select {
	case <-l.served:
	case <-time.After(20 * time.Second):
		t.Fatal("the stream goes on")
	}
}

func TestAStreamTellsWhatThereIsAndThenWhatChanges(t *testing.T) {
	g := &given{transactions: []*api.Transaction{transaction("a", ""), transaction("b", "")}, changes: watch.NewFake()}
	l := listen(t, g, time.Hour)
	assert.Equal(t, []string{"event: transaction a", "event: transaction b", "event: synceddata: {}"}, []string{l.next(), l.next(), l.next()})
	g.changes.Modify(transaction("b", api.PhaseCommitting))
	g.changes.Delete(transaction("a", ""))
	g.changes.Add(transaction("c", ""))
	assert.Equal(t, []string{"event: transaction b", "event: deleted a", "event: transaction c"}, []string{l.next(), l.next(), l.next()})
	l.cancel()
	l.ended(t)
	assert.True(t, g.changes.IsStopped(), "the watch ends with the request")
}

func TestAStreamEndsWithTheWatch(t *testing.T) {
	g := &given{changes: watch.NewFake()}
	l := listen(t, g, time.Hour)
	assert.Equal(t, "event: synceddata: {}", l.next())
	g.changes.Stop()
	assert.Equal(t, "end", l.next())
	l.ended(t)
}

func TestAStreamSaysWhatEndsIt(t *testing.T) {
	g := &given{changes: watch.NewFake()}
	l := listen(t, g, time.Hour)
	assert.Equal(t, "event: synceddata: {}", l.next())
	status := apierrors.NewResourceExpired("too old").Status()
	g.changes.Error(&status)
	assert.Equal(t, `event: troubledata: {"error":"too old"}`, l.next())
	l.ended(t)
}

func TestAStreamThatHasNothingToSaySaysSo(t *testing.T) {
	l := listen(t, &given{changes: watch.NewFake()}, time.Millisecond)
	assert.Equal(t, []string{"event: synceddata: {}", ": alive", ": alive"}, []string{l.next(), l.next(), l.next()})
	l.cancel()
	l.ended(t)
}

func TestAStreamThatIsServedForAWhileHasThePageAskAgain(t *testing.T) {
	g := &given{changes: watch.NewFake()}
	l := listenFor(t, g, time.Hour, 100*time.Millisecond)
	assert.Equal(t, []string{"event: synceddata: {}", "event: againdata: {}", "end"}, []string{l.next(), l.next(), l.next()})
	l.ended(t)
	assert.True(t, g.changes.IsStopped())
}

package ordering

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// lag is how often an API server does not yet say that it serves what a definition says.
const lag = 4

// lagging answers some times what is served as it was before a definition was created.
type lagging struct {
	mu      sync.Mutex
	before  map[string]answer // by path and media type
	created bool
	lagged  int // how often it has answered so
}

type answer struct {
	header http.Header
	body   []byte
}

// over puts it between Janus and the API server.
func (l *lagging) over(next http.RoundTripper) http.RoundTripper {
	return harness.RoundTrip(func(req *http.Request) (*http.Response, error) {
		discovers := req.Method == http.MethodGet && (req.URL.Path == "/apis" || req.URL.Path == "/api")
		key := req.URL.Path + " " + req.Header.Get("Accept")
		if discovers {
			if old, ok := l.old(key); ok {
				return old.response(req), nil
			}
		}
		response, err := next.RoundTrip(req)
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/customresourcedefinitions") && !req.URL.Query().Has("dryRun") {
			l.create()
		}
		if err != nil || !discovers || response.StatusCode != http.StatusOK {
			return response, err
		}
		return l.keep(key, response)
	})
}

// create notes that a definition was created.
func (l *lagging) create() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created = true
}

// old is what was answered before, if that is to be answered now.
func (l *lagging) old(key string) (answer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.before[key]
	if !ok || !l.created || l.lagged >= lag {
		return answer{}, false
	}
	if strings.HasPrefix(key, "/apis") {
		l.lagged++
	}
	return known, true
}

// keep keeps an answer, if no definition was created before.
func (l *lagging) keep(key string, response *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.created {
		l.before[key] = answer{response.Header, body}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

func (a answer) response(req *http.Request) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: req,
	}
}

// What the API server says that it serves takes a moment to follow a definition. An activation is decided
// after that.
func TestAnActivationIsNotDecidedByWhatWasServedBefore(t *testing.T) {
	t.Parallel()
	l := newLamps(t)
	server := &lagging{before: map[string]answer{}}
	l.Start(harness.WithTransport(server.over))
	txn := l.Run("made", l.fill("changes:\n- "+defining+"\n- {name: lamp, "+isThere+", "+lamp+"}\n"+
		"- {name: note, "+someLamp+", type: Create, target: {apiVersion: v1, kind: ConfigMap, name: note}, content: {data: {a: b}}}\n"))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, []string{"", "", ""}, reasonsOf(txn))
	for i := range 2 {
		assert.Equal(t, map[api.ConditionName]bool{api.ConditionActivation: true}, results(txn.Status.Items[i+1]))
	}
	assert.Equal(t, lag, server.lagged, "it was asked before it served the kind")
	l.NothingLeft("made")
}

package concurrency

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// threeAndNever patches three ConfigMaps, which are as many as are listed, and rolls that back.
const threeAndNever = `
changes:
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: a}, content: {data: {version: "2"}}}
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: b}, content: {data: {version: "2"}}}
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: c}, content: {data: {version: "2"}}}
- {type: Await, target: {apiVersion: v1, kind: ConfigMap, name: c}, readyWhen: {expression: "true"}, failWhen: {expression: "true"}}
`

const three = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {version: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {version: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {version: "1"}}
`

// listing is a transport that does something around the first list of the metadata of ConfigMaps.
type listing struct {
	around func(send func() (*http.Response, error)) (*http.Response, error)
	met    atomic.Int32
}

func (l *listing) wrap(next http.RoundTripper) http.RoundTripper {
	return harness.RoundTrip(func(r *http.Request) (*http.Response, error) {
		send := func() (*http.Response, error) { return next.RoundTrip(r) }
		lists := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps") &&
			strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList")
		if !lists || l.met.Add(1) > 1 {
			return send()
		}
		return l.around(send)
	})
}

// Three targets are read before the locks, and one list says under the locks that they are as they
// were. What another client writes before the list is in the before-image; what it writes after the
// list has the change refused. A list that fails is made up for by reads.
func TestAListUnderTheLocksMissesNoWriteOfOthers(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		around func(foreign func(), send func() (*http.Response, error)) (*http.Response, error)
		writes bool
		reason string
	}{
		"a write before it": {func(foreign func(), send func() (*http.Response, error)) (*http.Response, error) {
			foreign()
			return send()
		}, true, errclass.ReadyFailed},
		"a write after it": {func(foreign func(), send func() (*http.Response, error)) (*http.Response, error) {
			defer foreign()
			return send()
		}, true, errclass.Drifted},
		"a failure": {func(func(), func() (*http.Response, error)) (*http.Response, error) {
			return nil, errors.New("the connection was reset")
		}, false, errclass.ReadyFailed},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply(three)
			foreign := func() {
				e.Merge("other", "ConfigMap/a", `{"data": {"version": "theirs", "more": "theirs"}}`)
			}
			list := &listing{around: func(send func() (*http.Response, error)) (*http.Response, error) { return c.around(foreign, send) }}
			e.Start(harness.WithTransport(list.wrap))
			txn := e.Run("txn", threeAndNever)
			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			_, reason, _ := harness.Condition(txn, api.ConditionReady)
			assert.Equal(t, c.reason, reason, harness.Describe(txn))
			assert.Positive(t, list.met.Load(), "nothing was listed")
			wanted := map[string]any{"version": "1"}
			if c.writes {
				wanted = map[string]any{"version": "theirs", "more": "theirs"}
			}
			assert.Equal(t, wanted, e.Object("ConfigMap/a").Object["data"])
			for _, other := range []string{"b", "c"} {
				assert.Equal(t, map[string]any{"version": "1"}, e.Object("ConfigMap/" + other).Object["data"])
			}
			e.NothingLeft("txn")
		})
	}
}

package ui

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/internal/ui"
	"janus.io/janus/test/harness"
)

// look has the tab be hidden or seen, as far as the page can tell.
func (b *browser) look(hidden string) {
	b.t.Helper()
	b.do(chromedp.Evaluate(`Object.defineProperty(document, "hidden", {value: `+hidden+`, configurable: true});
		void document.dispatchEvent(new Event("visibilitychange"))`, nil))
}

// TestAPageThatNobodyLooksAtLeavesItsConnectionToOthers hides the tab and shows it again.
func TestAPageThatNobodyLooksAtLeavesItsConnectionToOthers(t *testing.T) {
	e := harness.New(t)
	e.Start()
	handler, err := ui.Handler(ui.NewCluster(e.Dynamic, e.Kube, e.Namespace), ui.Options{})
	require.NoError(t, err)
	var streams atomic.Int32
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/stream" {
			streams.Add(1)
			defer streams.Add(-1)
		}
		handler.ServeHTTP(w, r)
	})
	server := httptest.NewServer(ui.OnLoopback(ui.Below("secret", counted)))
	t.Cleanup(server.Close)
	b := open(t)
	b.do(chromedp.Navigate(server.URL + "/secret/"))
	b.becomes("● live", connection)

	b.look("true")
	b.becomes("‖ paused", connection)
	e.Until("the stream has ended", func() bool { return streams.Load() == 0 })
	e.Submit("meanwhile", waits)
	b.look("false")
	b.becomes("● live", connection)
	b.becomes("meanwhile", rows)
	assert.Equal(t, int32(1), streams.Load())
	troubles, _ := b.noticed()
	assert.Empty(t, troubles, "what the console says")
}

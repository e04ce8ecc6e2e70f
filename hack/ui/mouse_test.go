package ui

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	"janus.io/janus/internal/ui"
	"janus.io/janus/test/harness"
)

// mouse sends what the left button does in the middle of the first element of a selector.
func (b *browser) mouse(selector string, does input.MouseType) {
	b.t.Helper()
	var middle struct{ X, Y float64 }
	b.do(chromedp.Evaluate(fmt.Sprintf(`(({x, y, width, height}) => ({X: x + width / 2, Y: y + height / 2}))(document.querySelector(%q).getBoundingClientRect())`, selector), &middle))
	b.do(input.DispatchMouseEvent(does, middle.X, middle.Y).WithButton(input.Left).WithClickCount(1))
}

// TestThePageStaysStillUnderTheMouse presses the button on a row, has the row change, and lets
// the button go: on a page that is live that happens to everybody. What is marked stays marked.
func TestThePageStaysStillUnderTheMouse(t *testing.T) {
	e := harness.New(t)
	e.Start()
	server := httptest.NewServer(ui.OnLoopback(ui.Below("secret", page(t, e))))
	t.Cleanup(server.Close)
	b := open(t)
	b.do(chromedp.Navigate(server.URL + "/secret/"))
	b.becomes("● live", connection)
	e.Submit("release-2", waits)
	const phase = "#rows tr td:first-child span"
	b.becomes("◔ Waiting", `document.querySelector("`+phase+`")?.textContent`)

	b.mouse(phase, input.MousePressed)
	e.Merge("tester", "ConfigMap/app-config", `{"data": {"confirmed": "yes"}}`)
	b.becomes("✓ Committed", `document.querySelector("`+phase+`").textContent`)
	b.mouse(phase, input.MouseReleased)
	b.becomes("✓ Committed release-2", title)

	b.becomes("true", all+`.includes("Locksnone")`)
	b.becomes("true", `[...document.querySelectorAll("#parts table")].at(-1).textContent.includes("the change is in effect")`)
	const reads = `performance.getEntriesByType("resource").filter((r) => r.name.endsWith("/release-2")).length`
	b.do(chromedp.Evaluate(`getSelection().selectAllChildren(document.getElementById("title"))`, nil))
	before := b.value(reads)
	e.Merge("tester", "backup.janus.io/v1alpha1 Transaction/release-2", `{"metadata": {"labels": {"seen": "yes"}}}`)
	b.becomes("true", reads+" > "+before)
	assert.Equal(t, "✓ Committed "+e.Namespace+"/release-2", b.value("getSelection().toString()"))
	troubles, _ := b.noticed()
	assert.Empty(t, troubles, "what the console says")
}

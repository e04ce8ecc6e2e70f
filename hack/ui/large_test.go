package ui

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/ui"
	"janus.io/janus/test/harness"
)

// TestFiveHundredItemsAsTheyAreMade follows a Transaction that janusd makes, and reads then what all of its items have changed.
func TestFiveHundredItemsAsTheyAreMade(t *testing.T) {
	e := harness.New(t)
	e.Start()
	server := httptest.NewServer(ui.OnLoopback(ui.Below("secret", page(t, e))))
	t.Cleanup(server.Close)
	b := open(t)
	b.do(chromedp.Navigate(server.URL + "/secret/#" + e.Namespace + "/large"))
	b.becomes("● live", connection)

	var spec strings.Builder
	spec.WriteString("revisionHistoryLimit: 10\nchanges:\n")
	for i := range 500 {
		fmt.Fprintf(&spec, "- {name: item-%d, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: large-%d}, content: {data: {number: \"%d\"}}", i, i, i)
		if i == 499 {
			spec.WriteString(`, readyWhen: {expression: "has(object.data.confirmed)", timeout: 10m}`)
		}
		spec.WriteString("}\n")
	}
	e.Submit("large", spec.String())
	e.Await("large", "the wait for its last item", func(x *api.Transaction) bool {
		return len(x.Status.Items) == 500 && x.Status.Items[499].WaitStartTime != nil
	})
	b.becomes("499 of 500 changes, 1 waiting", `document.getElementById("progress").textContent`)
	assert.Equal(t, "500", b.value(`document.querySelectorAll("#graph svg rect").length`))
	assert.Equal(t, "true", b.value(blockerSeen))
	e.Merge("tester", "ConfigMap/large-499", `{"data": {"confirmed": "yes"}}`)
	b.becomes("✓ Committed large", title)
	b.becomes("500 of 500 changes", `document.getElementById("progress").textContent`)
	b.becomes("true", `Boolean(document.getElementById("with-changed"))`)
	b.do(chromedp.Click("#more"), chromedp.Click("#with-changed"))
	b.becomes("true", `[...document.querySelectorAll("#items tbody tr")].every((r, n) => r.textContent.includes('+ .data.number "' + n + '"'))`)
	troubles, _ := b.noticed()
	assert.Empty(t, troubles, "what the console says")
}

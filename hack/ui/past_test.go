package ui

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/ui"
)

// committed is a Transaction that has committed, and what it has changed.
func committed() *canned {
	t := large(4, inAList)
	t.Name, t.UID = "release-2", "release-2"
	t.Status.Phase, t.Status.CompletionTime, t.Status.Progress = api.PhaseCommitted, ago(20*time.Second), "4/4"
	t.Status.Revision, t.Status.RevisionDigest, t.Status.RollbackRef = 12, "sha256:12", &api.RollbackRef{Name: "release-2-rollback"}
	t.Status.Conditions = nil
	for i, target := range []api.Target{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "app-config"}, {APIVersion: "v1", Kind: "Secret", Name: "payment-key"},
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-server"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "old-banner"},
	} {
		item, c := &t.Status.Items[i], &t.Spec.Changes[i]
		target.Namespace, c.Type = "shop", []api.ChangeType{api.Patch, api.Create, api.Patch, api.Delete}[i]
		c.Name, item.Name, c.Target, item.Target = target.Name, target.Name, target, target
		item.Before = &api.BeforeImage{Key: fmt.Sprint(i)}
	}
	t.Status.Items[3].WaitStartTime, t.Spec.Changes[3].ReadyWhen = nil, nil
	return &canned{
		transactions: []*api.Transaction{t},
		revisions: []ui.Revision{
			{Number: 11, Transaction: "release-1", UID: "release-1"}, {Number: 12, Transaction: "release-2", UID: "release-2"}, {Number: 13, Transaction: "greets", UID: "greets"},
		},
		changed: [][]api.FieldChange{
			{{Field: ".data.greeting", Before: `"welcome"`, After: `"hello"`}, {Field: ".data.version", Before: `"1.0"`, After: `"2.0"`}},
			{{Field: ".data.key", After: `"hunter2"`}},
			{{Field: `.spec.template.spec.containers[name="web"].image`, Before: `"myapp:v1.0"`, After: `"myapp:v2.0"`}},
			{{Field: ".data.text", Before: `"Sale!"`}},
		},
	}
}

// itemText is what an item says below what is done with it.
func itemText(n int) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#item-%d .field, #item-%d td:last-child > div:not([class]), #item-%d td:last-child > [class='']")].map((e) => e.textContent).join("; ")`, n, n, n)
}

// TestWhatWasChangedAndWhatAnUndoWouldChange chooses by keyboard what is shown with the items of a Transaction that has ended.
func TestWhatWasChangedAndWhatAnUndoWouldChange(t *testing.T) {
	b, address := showing(t, committed())
	b.size(1280, 900)
	b.do(light, chromedp.Navigate(address+"#shop/release-2"))
	b.becomes("✓ Committed release-2", title)
	b.do(chromedp.Focus("#with-asked"))
	b.press(kb.ArrowRight)
	b.becomes("with-changed", focused)
	for n, want := range []string{
		`~ .data.greeting "welcome" → "hello"; ~ .data.version "1.0" → "2.0"`, `+ .data.key ***`,
		`~ .spec.template.spec.containers[name="web"].image "myapp:v1.0" → "myapp:v2.0"`, `− .data.text "Sale!"`,
	} {
		b.becomes(want, itemText(n))
	}
	b.press(kb.ArrowRight)
	for n, want := range []string{
		`an undo sets back; ~ .data.greeting "hello" → "welcome"; ~ .data.version "2.0" → "1.0"`, `an undo deletes it; − .data.key ***`,
		`an undo sets back; ~ .spec.template.spec.containers[name="web"].image "myapp:v2.0" → "myapp:v1.0"`, `an undo creates it again; + .data.text "Sale!"`,
	} {
		b.becomes(want, itemText(n))
	}
	assert.Equal(t, "false", b.value(all+`.includes("hunter2")`))
	assert.Equal(t, "13|greets|;12|release-2 (this one)|kubectl janus undo --to-revision 12 -n shop;11|release-1|kubectl janus undo --to-revision 11 -n shop",
		b.value(`[...document.querySelectorAll("#part-history tbody tr")].map((r) => [...r.cells].map((c) => (c.querySelector("code") || c).textContent.replace("shop/", "")).join("|")).join(";")`))
	assert.Equal(t, "kubectl janus undo release-2 -n shop", b.value(`document.querySelector("#part-commands code").textContent`))
	b.do(chromedp.Evaluate(`void document.getElementById("part-items").scrollIntoView()`, nil))
	b.picture("kubectl-janus-ui-past.png")
	troubles, _ := b.noticed()
	assert.Empty(t, troubles, "what the console says")
}

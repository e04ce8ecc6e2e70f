package ui

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// inAList is the order of a list, and inATree one in which each item has three that come after it.
func inAList(int) []string { return nil }

func inATree(i int) []string {
	if i == 0 {
		return nil
	}
	return []string{fmt.Sprintf("item-%d", (i-1)/3)}
}

// failed is a Transaction with an item that could not be rolled back.
func failed() *api.Transaction {
	t := large(4, inAList)
	t.Name, t.UID = "failed-release", "failed"
	t.Status.Phase, t.Status.CompletionTime, t.Status.Progress, t.Status.FailedItem = api.PhaseFailed, ago(time.Second), "3/4", "item-3"
	t.Status.Items[3].State, t.Status.Items[3].Reason = api.ItemUnresolved, "Conflict"
	t.Status.Items[3].Message = "another client has changed .spec.template.spec.containers[name=web].image since; it is \"registry.example.com/web-shop/frontend:v3.0\", of kubectl-patch"
	t.Status.Conditions[2].Reason, t.Status.Conditions[2].Message = "RollbackIncomplete", "not rolled back: item item-3 ("+t.Status.Items[3].Target.String()+"): "+t.Status.Items[3].Message
	return t
}

func several() *canned {
	return &canned{transactions: []*api.Transaction{large(3, inATree), large(200, inATree), large(500, inAList), failed()}}
}

// inEachState adds to several one that is running, one that waits for a lock, and those that have ended well.
func inEachState() *canned {
	c := several()
	for i, phase := range []api.Phase{api.PhaseCommitting, api.PhaseCommitted, api.PhaseRolledBack, api.PhasePlanned, api.PhasePreparing} {
		t := large(6, inATree)
		t.Name, t.UID, t.Status.Phase = []string{"checkout", "release-41", "release-42", "plan-43", "search"}[i], types.UID(phase), phase
		t.CreationTimestamp = *ago(time.Duration(3+i*i*40) * time.Minute)
		t.Status.StartTime, t.Status.Items[5].WaitStartTime = ago(time.Duration(3+i*i*40)*time.Minute-time.Second), nil
		reason, message := string(phase), "every change that had landed is rolled back"
		switch phase {
		case api.PhaseCommitting:
			t.Status.Items[4].State, t.Status.Items[5].State = api.ItemCommitting, api.ItemPrepared
		case api.PhasePreparing:
			reason, message = "LockHeld", "lock deployments.apps shop/web: it is held by Transaction shop/checkout (since 2026-03-01T12:00:00Z); waiting until it is released or expires, 5m0s after its last renewal; cancel that Transaction if this one can't wait"
			for i := range t.Status.Items {
				t.Status.Items[i].State = api.ItemPending
			}
		default:
			t.Status.CompletionTime = ago(time.Duration(2+i*i*40) * time.Minute)
			t.Status.Progress = map[api.Phase]string{api.PhaseCommitted: "6/6", api.PhaseRolledBack: "0/6", api.PhasePlanned: "0/6"}[phase]
			if phase == api.PhasePlanned {
				message = "planned; nothing was changed, because spec.dryRun is set"
			}
		}
		t.Status.Conditions[2].Reason, t.Status.Conditions[2].Message = reason, message
		t.Status.Conditions[3].Reason, t.Status.Conditions[3].Message = reason, message
		c.transactions = append(c.transactions, t)
	}
	return c
}

// size gives the tab another size.
func (b *browser) size(width, height int64) {
	b.t.Helper()
	b.do(emulation.SetDeviceMetricsOverride(width, height, 1, false))
	b.becomes(fmt.Sprint(width), "innerWidth")
}

// tooWide names what is wider than the window, and is not in a box that scrolls.
const tooWide = `[document.documentElement, ...document.querySelectorAll("body *")]
	.filter((e) => e.checkVisibility() && !e.closest(".scroll *, .unseen, svg *, thead, option"))
	.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 || e === document.documentElement && e.scrollWidth > e.clientWidth)
	.map((e) => e.tagName + "#" + e.id + "." + e.className + " " + e.textContent.slice(0, 40)).join("; ")`

// broken are the words of which a part is on another line than the rest.
const brokenWords = `(() => {
	const out = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = walk.nextNode());) {
		if (!n.parentElement.checkVisibility() || n.parentElement.closest(".unseen, svg, noscript, script, option")) continue;
		for (const m of n.data.matchAll(/[^\s\-\/.,:;()\[\]"=]+/g)) {
			const range = document.createRange();
			range.setStart(n, m.index);
			range.setEnd(n, m.index + m[0].length);
			if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) out.push(m[0]);
		}
	}
	return out.join(" ");
})()`

// blockerSeen says whether the item that the Transaction is at is within the box of the graph.
const blockerSeen = `(([box, node]) => node.top >= box.top && node.bottom <= box.bottom && node.left >= box.left && node.right <= box.right)
	(["#graph", "#graph .blocker"].map((s) => document.querySelector(s).getBoundingClientRect()))`

// TestThePageFits looks at few and many items in a narrow and in a wide window.
func TestThePageFits(t *testing.T) {
	c := several()
	b, address := showing(t, c)
	b.do(light, chromedp.Navigate(address))
	b.becomes("● live", connection)
	for _, width := range []int64{1280, 390} {
		b.size(width, 900)
		assert.Empty(t, b.value(tooWide), "the list at %d px", width)
		assert.Empty(t, b.value(brokenWords), "the list at %d px", width)
		for _, one := range c.transactions {
			b.do(chromedp.Evaluate(`void (location.hash = "#shop/`+one.Name+`")`, nil))
			b.becomes("true", `document.title.endsWith("`+one.Name+`") && Boolean(document.getElementById("part-events"))`)
			about := fmt.Sprintf("%s at %d px", one.Name, width)
			assert.Empty(t, b.value(tooWide), about)
			assert.Empty(t, b.value(brokenWords), about)
			assert.Equal(t, "true", b.value(blockerSeen), about)
			assert.Equal(t, fmt.Sprint(len(one.Status.Items)), b.value(`document.querySelectorAll("#graph svg rect").length`), about)
			b.named(about)
		}
		b.do(chromedp.Evaluate(`void (location.hash = "#")`, nil))
	}
	b.size(390, 1100)
	b.do(chromedp.Evaluate(`void (location.hash = "#shop/large-3")`, nil))
	b.becomes("◔ Waiting large-3", title)
	b.picture("kubectl-janus-ui-narrow.png")
	troubles, _ := b.noticed()
	assert.Empty(t, troubles, "what the console says")
}

// named checks what readers of screens are told: tables are tables though their rows are cards, and
// whatever can be pressed or filled in has a name.
func (b *browser) named(about string) {
	b.t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored bool            `json:"ignored"`
			Role    accessibleValue `json:"role"`
			Name    accessibleValue `json:"name"`
		} `json:"nodes"`
	}
	// The package accessibility does not know all that this browser says.
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, accessibility.CommandGetFullAXTree, nil, &tree)
	}))
	roles := map[string]int{}
	for _, n := range tree.Nodes {
		role := fmt.Sprint(n.Role.Value)
		if n.Ignored {
			continue
		}
		roles[role]++
		switch role {
		case "button", "checkbox", "radio", "combobox", "link", "searchbox":
			assert.NotContains(b.t, []any{"", nil}, n.Name.Value, "%s: a %s has no name", about, role)
		}
	}
	for _, role := range []string{"table", "row", "cell", "columnheader", "status", "heading", "article"} {
		assert.Positive(b.t, roles[role], "%s: %s", about, role)
	}
}

type accessibleValue struct {
	Value any `json:"value"`
}

// TestManyItemsAreShownAtOnce reads a Transaction with 500 items, and finds the one that it is at.
func TestManyItemsAreShownAtOnce(t *testing.T) {
	c := several()
	b, address := showing(t, c)
	b.size(1280, 1500)
	b.do(light, chromedp.Navigate(address+"#shop/large-500"))
	b.becomes("◔ Waiting large-500", title)
	assert.Equal(t, "499 of 500 changes, 1 waiting", b.value(`document.getElementById("progress").textContent`))
	assert.Regexp(t, `^◔ Waiting 1?\d+s of 5m for item-499: 1/3 Pods ready$`, b.value(`document.querySelector(".now").textContent`))
	assert.Equal(t, "101", b.value(`document.querySelectorAll("#items tbody tr").length`), "the first hundred, and the one that it is at")
	b.do(chromedp.Click("#more"))
	assert.Equal(t, "500", b.value(`document.querySelectorAll("#items tbody tr").length`))
	b.do(chromedp.Click("#to-blocker"))
	b.becomes("item-499", focused)
	b.do(chromedp.Evaluate(`document.getElementById("which").value = "open"; void document.getElementById("which").dispatchEvent(new Event("change"))`, nil))
	assert.Equal(t, "1", b.value(`document.querySelectorAll("#items tbody tr").length`))

	// It is drawn again within the time that a person takes for at once, though this machine has other things to do.
	assert.Equal(t, "true", b.value(`(() => { const began = performance.now(); parts.delete("order"); parts.delete("timeline"); itemRows = []; drawParts(last); return performance.now() - began < 2000; })()`))
	b.do(chromedp.Evaluate("scrollTo(0, 0)", nil))
	b.picture("kubectl-janus-ui-large.png")
	troubles, _ := b.noticed()
	assert.Empty(t, troubles, "what the console says")
}

// TestTheListIsFilteredByStateAndALinkLeadsToIt filters by mouse, loads the page again, and copies a command.
func TestTheListIsFilteredByStateAndALinkLeadsToIt(t *testing.T) {
	b, address := showing(t, inEachState())
	b.size(1280, 760)
	b.do(light, chromedp.Navigate(address))
	b.becomes("● live", connection)
	b.becomes("9 of 9 Transactions", `document.getElementById("count").textContent`)
	assert.Equal(t, "▶ Running1|◔ Waiting4|✗ Failed1|↶ RolledBack1|✓ Committed1|✓ Planned1", b.value(`[...document.querySelectorAll("#states label")].map((l) => l.textContent).join("|")`))
	b.do(chromedp.Click(`#states input[value=Failed]`))
	b.becomes("failed-release", rows)
	assert.Equal(t, "#?state=Failed", b.value("location.hash"))
	b.do(chromedp.Reload())
	b.becomes("failed-release", rows)
	b.do(chromedp.Click(`#states input[value=Waiting]`))
	b.becomes("failed-release large-200 large-3 large-500 search", rows)
	b.do(chromedp.Click(`//a[text()="failed-release"]`, chromedp.BySearch))
	b.becomes("✗ Failed failed-release", title)
	assert.Equal(t, "#shop/failed-release", b.value("location.hash"))

	b.do(onBrowser(cdpbrowser.GrantPermissions([]cdpbrowser.PermissionType{cdpbrowser.PermissionTypeClipboardReadWrite, cdpbrowser.PermissionTypeClipboardSanitizedWrite})))
	b.do(chromedp.Click("#part-commands button"))
	b.becomes("✓ copied", `document.querySelector("#part-commands button").textContent`)
	copied := ""
	b.do(chromedp.Evaluate("navigator.clipboard.readText()", &copied, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	assert.Equal(t, "kubectl janus recover failed-release -n shop", copied)
	b.becomes("Copied: kubectl janus recover failed-release -n shop", `document.getElementById("news").textContent`)

	b.do(chromedp.Click("#back"))
	b.becomes("failed-release large-200 large-3 large-500 search", rows)
	b.do(chromedp.Click(`#states input[value=Waiting]`), chromedp.Click(`#states input[value=Failed]`))
	b.picture("kubectl-janus-ui-list.png")
	troubles, _ := b.noticed()
	require.Empty(t, troubles, "what the console says")
}

// onBrowser does what concerns the browser, and not the tab.
func onBrowser(action chromedp.Action) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		return action.Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
	})
}

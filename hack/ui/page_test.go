package ui

import (
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/internal/janustest"
	"janus.io/janus/internal/testcluster"
	"janus.io/janus/internal/ui"
)

var update = flag.Bool("update", false, "write the pictures into docs")

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m, testcluster.Options{})) }

const release = `
changes:
- name: settings
  type: Create
  target: {apiVersion: v1, kind: ConfigMap, name: settings}
  content: {data: {size: "2", colour: green}}
- name: key
  type: Create
  target: {apiVersion: v1, kind: Secret, name: payment-key}
  content: {stringData: {password: hunter2}}
- name: web
  type: Create
  target: {apiVersion: v1, kind: ConfigMap, name: web}
  content: {data: {text: Welcome}}
  dependsOn: [settings, key]
  readyWhen: {expression: "has(object.data.confirmed)"}
- name: announce
  type: Create
  target: {apiVersion: v1, kind: ConfigMap, name: banner}
  content: {data: {text: Version 2}}
  dependsOn: [web]
`

// A name with markup is one that the API server refuses, and says so.
const markup = `
changes:
- type: Create
  target: {apiVersion: v1, kind: ConfigMap, name: "<img src=x onerror=alert(1)>"}
  content: {data: {x: "1"}}
`

const waits = `
changes:
- type: Patch
  target: {apiVersion: v1, kind: ConfigMap, name: settings}
  content: {data: {size: "3"}}
`

const (
	rows    = `[...document.querySelectorAll("#rows a")].map((a) => a.textContent).sort().join(" ")`
	focused = `document.activeElement.id || document.activeElement.textContent`
	title   = `document.getElementById("title")?.textContent.replace(/ \S+\//, " ")`
	all     = `document.getElementById("detail").textContent`
)

// TestThePage uses the page by keyboard alone, while Transactions run. Its name is short for
// the sake of the pictures: the namespace has it.
func TestThePage(t *testing.T) {
	e := janustest.New(t)
	e.Start()
	e.Run("markup", markup)
	handler, err := ui.Handler(ui.NewCluster(e.Dynamic, e.Kube, e.Namespace), ui.Options{})
	require.NoError(t, err)
	server := httptest.NewServer(ui.OnLoopback(ui.Below("secret", handler)))
	t.Cleanup(server.Close)
	b := open(t)
	b.do(light, chromedp.Navigate(server.URL+"/secret/"))
	b.becomes("markup", rows)

	// What is made after the page was opened appears on it.
	e.Submit("release-2", release)
	b.becomes("markup release-2", rows)
	b.becomes("▶ Committing", `document.querySelector("#rows tr td").textContent`)

	// The filter, by keyboard alone.
	b.press("/")
	assert.Equal(t, "text", b.value(focused))
	b.press("rel")
	b.becomes("release-2", rows)
	b.press(kb.Escape)
	b.becomes("markup release-2", rows)
	b.press("j")
	assert.Equal(t, "release-2", b.value(focused))
	b.press("j")
	assert.Equal(t, "markup", b.value(focused))
	b.press(kb.ArrowUp)
	assert.Equal(t, "release-2", b.value(focused))

	// One of them.
	b.press(kb.Enter)
	b.becomes("▶ Committing release-2", title)
	b.becomes("4", `document.querySelectorAll("#graph svg rect").length`)
	assert.Equal(t, "3", b.value(`document.querySelectorAll("#graph svg > path").length`), "an arrow for each dependsOn")
	assert.Equal(t, "settings; key; web after settings, key; announce after web", b.value(`document.querySelector("#graph svg").getAttribute("aria-label")`))
	e.Submit("waits", waits)
	b.becomes("true", all+`.includes("`+e.Namespace+`/waits")`)
	b.becomes("true", all+`.includes("● this Transaction")`)
	assert.Equal(t, "false", b.value(all+`.includes("hunter2")`))
	assert.Equal(t, "rgb(255, 255, 255)", b.value(ground))
	b.picture("kubectl-janus-ui-light.png")
	b.do(dark)
	assert.Equal(t, "rgb(20, 23, 28)", b.value(ground))
	b.picture("kubectl-janus-ui-dark.png")

	// It is followed to its end.
	e.Merge("tester", "ConfigMap/web", `{"data": {"confirmed": "yes"}}`)
	b.becomes("✓ Committed release-2", title)
	b.becomes("true", all+`.includes("Locksnone")`)

	// Back, and to the one with markup, which is text.
	b.press(kb.Escape)
	b.becomes("release-2", focused)
	b.press("/")
	b.press("markup")
	b.press(kb.Enter)
	b.becomes("✗ Failed markup", title)
	assert.Equal(t, "true", b.value(all+`.includes("<img src=x onerror=alert(1)>")`))
	assert.Equal(t, "0", b.value(`document.querySelectorAll("img").length`))

	// What is deleted goes.
	e.Delete("release-2", metav1.DeletePropagationBackground)
	b.press(kb.Escape)
	b.press(kb.Escape)
	b.becomes("markup waits", rows)
	troubles, hosts := b.noticed()
	assert.Empty(t, troubles, "what the console says")
	assert.Equal(t, map[string]bool{server.URL: true}, hosts, "who was asked")
}

var (
	light = emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}})
	dark  = emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}})
)

const ground = `getComputedStyle(document.body).backgroundColor`

// picture makes a picture of what is seen; -update writes it into docs.
func (b *browser) picture(name string) {
	b.t.Helper()
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	require.NotEmpty(b.t, png)
	if *update {
		require.NoError(b.t, os.WriteFile(filepath.Join(janustest.Root(), "docs", name), png, 0o644))
	}
}

package ui

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/internal/ui"
	"janus.io/janus/internal/wiring/look"
	"janus.io/janus/revision"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

var update = flag.Bool("update", false, "write the pictures into docs")

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m, testcluster.Options{Alone: true})) }

const release = `
serviceAccountName: deploy-sa
revisionHistoryLimit: 10
changes:
- name: config
  type: Patch
  target: {apiVersion: v1, kind: ConfigMap, name: app-config}
  content: {data: {version: "2.0", greeting: hello}}
- name: payment-key
  type: Create
  target: {apiVersion: v1, kind: Secret, name: payment-key}
  content: {stringData: {key: hunter2}}
- name: web-server
  type: Patch
  target: {apiVersion: apps/v1, kind: Deployment, name: web-server}
  content: {spec: {template: {spec: {containers: [{name: web, image: "myapp:v2.0"}]}}}}
  dependsOn: [config, payment-key]
  readyWhen: {status: Ready, timeout: 5m}
- name: old-api-key
  type: Delete
  target: {apiVersion: v1, kind: Secret, name: old-api-key}
  dependsOn: [web-server]
`

// A name with markup is one that the API server refuses, and says so.
const markup = `
serviceAccountName: deploy-sa
changes:
- type: Create
  target: {apiVersion: v1, kind: ConfigMap, name: "<img src=x onerror=alert(1)>"}
  content: {data: {x: "1"}}
`

const greets = `
serviceAccountName: deploy-sa
changes:
- type: Patch
  target: {apiVersion: v1, kind: ConfigMap, name: app-config}
  content: {data: {greeting: good morning}}
`

// shop is the namespace of the walkthrough, with what its Transaction finds, and Janus for it.
func shop(t *testing.T) *harness.Env {
	t.Helper()
	e := harness.New(t).In("shop")
	before, err := os.ReadFile(filepath.Join(harness.Root(), "examples", "deploy-v2", "before.yaml"))
	require.NoError(t, err)
	e.Apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	objects, err := harness.Decode(string(before))
	require.NoError(t, err)
	for _, object := range objects {
		client, err := e.For(object.GroupVersionKind(), "shop")
		require.NoError(t, err)
		_, err = client.Create(t.Context(), object, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"})
		require.NoError(t, err)
	}
	e.Apply(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: deploy-sa}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deploy-sa}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deploy-sa, namespace: shop}]
`)
	e.Until("deploy-sa has its rights", func() bool {
		answer, err := e.Kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authzv1.SubjectAccessReview{Spec: authzv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:shop:deploy-sa",
			ResourceAttributes: &authzv1.ResourceAttributes{Namespace: "shop", Verb: "patch", Resource: "configmaps"},
		}}, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed
	})
	e.Start()
	return e
}

// followConnection has the page keep what it says of its connection.
const followConnection = `window.said = [];
void new MutationObserver(() => window.said.push(document.getElementById("connection").textContent))
  .observe(document.getElementById("connection"), {childList: true})`

const (
	rows       = `[...document.querySelectorAll("#rows a")].map((a) => a.textContent).sort().join(" ")`
	focused    = `document.activeElement.id || document.activeElement.textContent`
	connection = `document.getElementById("connection").textContent`
	title      = `document.getElementById("title")?.textContent.replace(/ \S+\//, " ")`
	all        = `document.getElementById("detail").textContent`
)

// TestThePage uses the page by keyboard alone, while Transactions run, and makes pictures.
func TestThePage(t *testing.T) {
	e := shop(t)
	e.Run("markup", markup)
	handler := page(t, e)
	// As janusd serves it, where a stream ends after a while.
	var streams atomic.Int32
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/stream" {
			streams.Add(1)
		}
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		handler.ServeHTTP(w, r.WithContext(ctx))
	})
	server := httptest.NewServer(ui.OnLoopback(ui.Below("secret", limited)))
	t.Cleanup(server.Close)
	b := open(t)
	b.do(light, chromedp.Navigate(server.URL+"/secret/"))
	b.becomes("● live", connection)
	b.do(chromedp.Evaluate(followConnection, nil))
	b.becomes("markup", rows)

	// What is made after the page was opened appears on it.
	e.Submit("deploy-v2", release)
	b.becomes("deploy-v2 markup", rows)
	b.becomes("◔ Waiting", `document.querySelector("#rows tr td").textContent`)

	// The filter, by keyboard alone.
	b.press("/")
	assert.Equal(t, "text", b.value(focused))
	b.press("v2")
	b.becomes("deploy-v2", rows)
	b.press(kb.Escape)
	b.becomes("deploy-v2 markup", rows)
	b.press("j")
	assert.Equal(t, "deploy-v2", b.value(focused))
	b.press("j")
	assert.Equal(t, "markup", b.value(focused))
	b.press(kb.ArrowUp)
	assert.Equal(t, "deploy-v2", b.value(focused))

	// One of them.
	b.press(kb.Enter)
	b.becomes("◔ Waiting deploy-v2", title)
	b.becomes("4", `document.querySelectorAll("#graph svg rect").length`)
	assert.Equal(t, "3", b.value(`document.querySelectorAll("#graph svg > path").length`), "an arrow for each dependsOn")
	assert.Equal(t, "config; payment-key; web-server after config, payment-key; old-api-key after web-server", b.value(`document.querySelector("#graph svg").getAttribute("aria-label")`))
	e.Submit("greets", greets)
	b.becomes("true", all+`.includes("shop/greets")`)
	b.becomes("true", all+`.includes("● this Transaction")`)
	b.becomes("2 of 4 changes, 1 waiting", `document.getElementById("progress").textContent`)
	b.becomes("true", `/^◔ Waiting [0-9]+s of 5m for web-server: .+/.test(document.querySelector(".now").textContent)`)
	assert.Equal(t, "◔ web-server", b.value(`document.querySelector("#graph .blocker text").textContent`))
	assert.Equal(t, "true", b.value(all+`.includes("kubectl janus cancel deploy-v2 -n shop")`))
	assert.Equal(t, "true", b.value(`[...document.querySelectorAll("time")].every((t) => /^[-0-9]{10} [:0-9]{8}Z$/.test(t.textContent))`), "times are in UTC, and say so")
	assert.Equal(t, "false", b.value(all+`.includes("hunter2")`))
	assert.Equal(t, "rgb(255, 255, 255)", b.value(ground))
	b.picture("kubectl-janus-ui-light.png")
	b.do(dark)
	assert.Equal(t, "rgb(20, 23, 28)", b.value(ground))
	b.picture("kubectl-janus-ui-dark.png")

	// It is followed to its end.
	deployment := e.Object("apps/v1 Deployment/web-server")
	e.Merge("tester", "apps/v1 Deployment/web-server", fmt.Sprintf(`{"status": {"observedGeneration": %d, "replicas": 2, "updatedReplicas": 2,
		"readyReplicas": 2, "availableReplicas": 2, "conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}}`,
		deployment.GetGeneration()), "status")
	b.becomes("✓ Committed deploy-v2", title)
	b.becomes("true", all+`.includes("Locksnone")`)
	b.becomes("4 of 4 changes", `document.getElementById("progress").textContent`)
	b.past()

	// Back, and to the one with markup, which is text.
	b.press(kb.Escape)
	b.becomes("deploy-v2", focused)
	b.press("/")
	b.press("markup")
	b.press(kb.Enter)
	b.becomes("✗ Failed markup", title)
	assert.Equal(t, "true", b.value(all+`.includes("<img src=x onerror=alert(1)>")`))
	assert.Equal(t, "0", b.value(`document.querySelectorAll("img").length`))

	// What is deleted goes.
	e.Delete("deploy-v2", metav1.DeletePropagationBackground)
	b.press(kb.Escape)
	b.press(kb.Escape)
	b.becomes("greets markup", rows)
	e.Until("a stream has ended", func() bool { return streams.Load() > 1 })
	// It is live again, and nobody is told that it was not meanwhile.
	b.becomes("● live", `[...new Set(window.said)].join(", ")`)
	troubles, hosts := b.noticed()
	assert.Empty(t, troubles, "what the console says")
	assert.Equal(t, map[string]bool{server.URL: true}, hosts, "who was asked")
}

// past looks at what deploy-v2 has changed, and at what an undo of it would change.
func (b *browser) past() {
	b.t.Helper()
	b.becomes("true", `Boolean(document.getElementById("with-changed"))`)
	b.do(chromedp.Click("#with-changed"))
	for item, want := range map[int]string{
		0: `~ .data.version "1.0" → "2.0"`, 1: `***`,
		2: `~ .spec.template.spec.containers[name="web"].image "myapp:v1.0" → "myapp:v2.0"`, 3: `***`,
	} {
		b.becomes("true", fmt.Sprintf(`document.getElementById("item-%d").textContent.includes(%q)`, item, want))
	}
	b.do(chromedp.Click("#with-undo"))
	for item, want := range map[int]string{0: `an undo sets back~ .data.greeting`, 1: "an undo deletes it", 3: "an undo creates it again"} {
		b.becomes("true", fmt.Sprintf(`document.getElementById("item-%d").textContent.includes(%q)`, item, want))
	}
	assert.Equal(b.t, "true", b.value(all+`.includes("kubectl janus undo deploy-v2 -n shop")`))
	assert.Equal(b.t, "false", b.value(`/hunter2|aHVudGVyMg|not-a-real-key|bm90LWEtcmVhbC1rZXk/.test(`+all+`)`))
	b.becomes("true", all+`.includes("deploy-v2 (this one)")`)
	b.do(chromedp.Click("#with-asked"), chromedp.Evaluate(`document.activeElement.blur()`, nil))
}

// page is the page of the namespace, with all that kubectl janus ui shows.
func page(t *testing.T, e *harness.Env) http.Handler {
	t.Helper()
	handler, err := ui.Handler(ui.NewCluster(e.Dynamic, e.Kube, e.Namespace), ui.Options{
		LeaseOf: look.LeaseOf(harness.SystemNamespace), History: look.Revisions{Store: revision.NewStore(e.Kube)}, Past: look.NewImages(e.Kube),
	})
	require.NoError(t, err)
	return handler
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
		require.NoError(b.t, os.WriteFile(filepath.Join(harness.Root(), "docs", name), png, 0o644))
	}
}

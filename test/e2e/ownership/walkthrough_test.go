package ownership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// shopFile is what a person applies with kubectl. It leaves the replicas to the
// autoscaler.
const shopFile = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "example.com/web:1"}
`

// gitopsFile is what the GitOps tool applies, server-side.
func gitopsFile(annotations string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {team: shop}, annotations: {" + annotations + "}}, " +
		"spec: {template: {spec: {containers: [{name: web, env: [{name: LOG_LEVEL, value: info}]}]}}}}"
}

const transactionA = `serviceAccountName: deployer
changes:
  - name: web
    target: {apiVersion: apps/v1, kind: Deployment, name: web}
    type: Patch
    content:
      spec:
        replicas: 3
        template:
          spec:
            containers:
              - {name: web, image: "example.com/web:2"}
              - {name: proxy, image: "example.com/proxy:1"}
  - name: blue
    target: {apiVersion: v1, kind: Service, name: blue}
    type: Create
    content: {spec: {ports: [{port: 80}]}}
  - name: green
    target: {apiVersion: v1, kind: Service, name: green}
    type: Create
    content: {spec: {ports: [{port: 80}]}}
`

const transactionB = `serviceAccountName: deployer
changes:
  - name: web
    target: {apiVersion: apps/v1, kind: Deployment, name: web}
    type: Patch
    content:
      spec:
        template:
          spec:
            containers:
              - {name: web, image: "example.com/web:2", env: [{name: LOG_LEVEL, value: debug}]}
              - {name: proxy, image: "example.com/proxy:1"}
`

// TestTheWalkThroughIsAsItsPageTells goes the way of docs/walkthrough.md.
func TestTheWalkThroughIsAsItsPageTells(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	w := &walk{t: t, Env: e}
	e.Autoscale()
	e.ApplyQuota(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: one}, spec: {hard: {count/services: "1"}}}`)
	gitops := newOutsider(t, e, "gitops")
	sync := func(annotations string) {
		_, err := gitops.apply(gitopsFile(annotations), false)
		require.NoError(t, err, "the GitOps tool does not force")
	}
	person := newOutsider(t, e, "person")

	w.shows("file.txt", shopFile)
	assert.Equal(t, "deployment.apps/web created", kubectlApply(t, e, shopFile))
	sync("")
	e.Apply(autoscaler)
	raise(person, webRef, 5)
	w.object("before")
	before := e.Object(webRef)

	w.others = map[string]func(){
		"a": func() {
			raise(person, webRef, 7)
			sync("reviewed: 'yes'")
			e.Merge("kubectl-edit", webRef, `{"spec":{"revisionHistoryLimit":5}}`)
		},
		"c": func() {
			person.patch(before, types.JSONPatchType, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.com/web:9"}]`)
		},
	}
	e.Start(harness.Acting(harness.Around{Undo: w.beforeTheFirstIsUndone}))
	w.shows("a.txt", transactionA)
	txn := e.Run("a", transactionA)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	w.status("a", txn)
	w.object("after-a")
	w.rolledBack(before, txn)

	assert.Equal(t, "deployment.apps/web unchanged", kubectlApply(t, e, shopFile))
	assert.Equal(t, int64(7), w.field("spec", "replicas"))

	w.shows("b.txt", transactionB)
	txn = e.Run("b", transactionB)
	committedAll(t, txn)
	w.status("b", txn)
	w.object("after-b")
	w.committed(txn)

	w.nextApply(sync)
	w.stranger(e.Run("c", strings.ReplaceAll(transactionA, "web:2", "web:3")))
	w.page()
}

// walk is the way of the page.
type walk struct {
	*harness.Env
	t *testing.T
	// others is what others do while a Transaction is rolled back, by its name.
	others map[string]func()
	shown  []string
}

// beforeTheFirstIsUndone lets the others act when the first change, which is undone
// last, is undone.
func (w *walk) beforeTheFirstIsUndone(transaction string, item int) {
	if act := w.others[transaction]; item == 0 && act != nil {
		delete(w.others, transaction)
		act()
	}
}

func (w *walk) field(path ...string) any { return field(w.t, w.Object(webRef), path...) }

func (w *walk) image() any {
	return deep(w.Object(webRef).Object, "spec", "template", "spec", "containers", "0", "image")
}

// containers returns the names of the containers.
func (w *walk) containers() string {
	list, _ := deep(w.Object(webRef).Object, "spec", "template", "spec", "containers").([]any)
	var names []string
	for i := range list {
		names = append(names, fmt.Sprint(deep(list[i], "name")))
	}
	return strings.Join(names, " ")
}

// rolledBack checks what the page tells of the rollback.
func (w *walk) rolledBack(before *unstructured.Unstructured, txn *api.Transaction) {
	w.t.Helper()
	require.NotContains(w.t, w.others, "a", "the others have not acted")
	assert.Equal(w.t, int64(7), w.field("spec", "replicas"), "the autoscaler's")
	assert.Equal(w.t, "example.com/web:1", w.image())
	assert.Equal(w.t, "web", w.containers())
	assert.Equal(w.t, "yes", w.field("metadata", "annotations", "reviewed"))
	assert.Equal(w.t, int64(5), w.field("spec", "revisionHistoryLimit"))
	assert.Equal(w.t, before.GetAnnotations()[lastApplied], w.field("metadata", "annotations", lastApplied))
	assert.Equal(w.t, []api.OwnedFields{{Manager: "kube-controller-manager", Subresource: "scale", Fields: []string{".spec.replicas"}}}, txn.Status.Items[0].Reclaimed)
	assert.Nil(w.t, w.Object("Service/blue"))
	assert.Nil(w.t, w.Object("Service/green"))
	assert.Empty(w.t, harness.JanusManagers(w.Object(webRef)))
	w.NothingLeft("a")
}

// committed checks what the page tells of the commit.
func (w *walk) committed(txn *api.Transaction) {
	w.t.Helper()
	assert.Equal(w.t, "example.com/web:2", w.image())
	assert.Equal(w.t, "web proxy", w.containers())
	assert.Equal(w.t, "debug", variable(w.Object(webRef), "LOG_LEVEL")["value"])
	assert.Equal(w.t, int64(7), w.field("spec", "replicas"))
	assert.Len(w.t, txn.Status.Items[0].Taken, 2)
	assert.Empty(w.t, harness.JanusManagers(w.Object(webRef)), "the container that nobody had before is nobody's")
	w.NothingLeft("b")
}

// nextApply checks what the page tells of those who apply afterwards.
func (w *walk) nextApply(sync func(annotations string)) {
	w.t.Helper()
	before := w.field("spec")
	for range 2 {
		assert.Equal(w.t, "deployment.apps/web configured", kubectlApply(w.t, w.Env, strings.Replace(shopFile, "web:1", "web:2", 1)))
		assert.Equal(w.t, before, w.field("spec"), "nothing was to be changed, and what is not in the file stays")
	}
	assert.Equal(w.t, "yes", w.field("metadata", "annotations", "reviewed"))
	kubectlApply(w.t, w.Env, shopFile)
	assert.Equal(w.t, "example.com/web:1", w.image(), "the old file")
	kubectlApply(w.t, w.Env, strings.Replace(shopFile, "web:1", "web:2", 1))
	sync("reviewed: 'yes'")
	assert.Equal(w.t, "info", variable(w.Object(webRef), "LOG_LEVEL")["value"])
	w.object("after-all")
}

// stranger checks what the page tells of a stranger who writes in between.
func (w *walk) stranger(txn *api.Transaction) {
	w.t.Helper()
	require.Equal(w.t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	require.Len(w.t, txn.Status.Items[0].Conflicts, 1)
	conflict := txn.Status.Items[0].Conflicts[0]
	assert.Equal(w.t, `.spec.template.spec.containers[name="web"].image`, conflict.Field)
	assert.Equal(w.t, []string{"person"}, conflict.Managers)
	assert.Equal(w.t, "example.com/web:9", w.image())
	assert.Equal(w.t, int64(7), w.field("spec", "replicas"), "the rest is rolled back")
}

// object shows the Deployment and who owns its fields.
func (w *walk) object(name string) {
	w.t.Helper()
	obj := w.Object(webRef)
	w.shows(name+".txt", asYAML(w.t, shortened(obj)))
	w.shows(name+"-owners.txt", ownersTable(w.t, obj))
}

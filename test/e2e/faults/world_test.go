package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"janus.io/janus/internal/expression"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/oracle"
)

const (
	account     = "deployer"
	transaction = "txn"
	lockTimeout = time.Minute
	// runLabel is on the namespaces in which ConfigMaps named refused-… are refused.
	runLabel = "faults.example.com/run"
)

// world is what all runs share.
type world struct {
	*harness.Client
	janusd  *rest.Config    // what Janus connects with
	ctx     context.Context //nolint:containedctx // It is the lifetime of the world, which ends with the test.
	schemas *harness.Schemas
	kinds   []expression.Kind // that are served all the time
	watcher *harness.Watcher
	scribe  *scribe
	hub     *hub

	// keep, if there is one, is given the evidence of every run.
	keep func(scenario, oracle.Evidence)

	mu    sync.Mutex
	free  map[string][]place // by rights
	serve atomic.Int64
}

// common is installed once: a custom kind with a status.
const common = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.faults.example.com}
spec:
  group: faults.example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}}}
            status: {type: object, properties: {phase: {type: string}}}
`

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

var widgets = schema.GroupVersionResource{Group: "faults.example.com", Version: "v1", Resource: "widgets"}

// newWorld makes ready what all runs share. It ends with the test.
func newWorld(t testing.TB) *world {
	t.Helper()
	e := harness.New(t)
	ctx := e.Context()
	w := &world{Client: e.Client, ctx: ctx, free: map[string][]place{}, schemas: harness.NewSchemas(e.Kube)}
	w.serve.Store(time.Now().Unix() % 1000 * 100000)
	var err error
	w.janusd, err = w.AsJanusd(ctx)
	require.NoError(t, err)
	require.NoError(t, w.ApplyYAML(ctx, "", common))
	require.NoError(t, w.ApplyRefusal(ctx, "faults-refusal", runLabel, "yes"))
	e.Served("faults.example.com/v1 Widget")
	w.kinds, err = harness.Kinds(w.Kube.Discovery())
	require.NoError(t, err)
	w.watcher = harness.NewWatcher(t, w.Client, widgets, definitions, revisions)
	w.scribe, w.hub = newScribe(w.watcher), newHub(ctx, w.Client)
	at, err := w.makePlace("")
	require.NoError(t, err)
	e.Until("the policy is in force", func() bool { return w.Refuses(ctx, at.namespace) })
	w.giveBack("", at)
	return w
}

// take returns a place in which nothing is.
func (w *world) take(rights string) (place, error) {
	w.mu.Lock()
	if list := w.free[rights]; len(list) > 0 {
		at := list[len(list)-1]
		w.free[rights] = list[:len(list)-1]
		w.mu.Unlock()
		at.run = w.word()
		return at, nil
	}
	w.mu.Unlock()
	return w.makePlace(rights)
}

// giveBack accepts a place that is as clean as a new one.
func (w *world) giveBack(rights string, at place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free[rights] = append(w.free[rights], at)
}

// word is one that no other run has.
func (w *world) word() string { return fmt.Sprintf("r%d", w.serve.Add(1)) }

func (w *world) makePlace(rights string) (place, error) {
	at := place{run: w.word()}
	at.namespace, at.other = at.run+"-near", at.run+"-away"
	namespaces := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s: \"yes\"}}}\n", at.namespace, runLabel)
	if rights == "cluster" {
		namespaces += fmt.Sprintf("---\n{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n", at.other)
	}
	if err := w.ApplyYAML(w.ctx, "", namespaces); err != nil {
		return place{}, err
	}
	return at, w.entitle(rights, at)
}

// entitle makes the ServiceAccount and its rights, and waits until they count.
func (w *world) entitle(rights string, at place) error {
	stream := fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s}}\n---\n%s", account, binding(rights, at))
	if err := w.ApplyYAML(w.ctx, at.namespace, stream); err != nil {
		return err
	}
	return harness.Poll(w.ctx, func(ctx context.Context) (bool, error) { return w.entitled(ctx, at) })
}

func binding(rights string, at place) string {
	kind := "RoleBinding"
	if rights == "cluster" {
		kind = "ClusterRoleBinding"
	}
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]
`, kind, at.namespace, account, at.namespace)
}

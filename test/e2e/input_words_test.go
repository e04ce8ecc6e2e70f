package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

const gadgetKind = "input.example.com/v1 Gadget"

const gadget = `
apiVersion: input.example.com/v1
kind: Gadget
metadata: {name: app}
spec: {size: 1}
`

// gadgetCRD is a CRD of a namespaced kind; its group $GROUP is to be filled in.
const gadgetCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.$GROUP}, spec: ` + gadgetSpec + `}`

const gadgetSpec = `{group: $GROUP, scope: Namespaced, ` +
	`names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}, ` +
	`versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, ` +
	`properties: {size: {type: integer, minimum: 0}, blob: {type: string}, more: {type: string}}}}}}}]}`

func inGroup(crd, group string) string { return strings.ReplaceAll(crd, "$GROUP", group) }

var gadgetsInstalled sync.Once

// removeCRD removes a CRD when a test has ended; it may be gone already.
func removeCRD(e *harness.Env, name string) {
	_ = e.Dynamic.Resource(crds).Delete(context.Background(), name, metav1.DeleteOptions{})
}

// installGadgets makes the kind Gadget of input.example.com.
func installGadgets(t *testing.T, e *harness.Env) {
	t.Helper()
	gadgetsInstalled.Do(func() {
		e.Apply(inGroup(gadgetCRD, "input.example.com"))
	})
	e.Served(gadgetKind)
}

// terminating makes a ConfigMap that is being deleted and waits for a finalizer
// until the test ends. The Env's namespace could not go either.
func terminating(t *testing.T, e *harness.Env, name string) {
	t.Helper()
	held(t, e, name)
	require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// held makes a ConfigMap with a finalizer, which is taken off when the test ends.
func held(t *testing.T, e *harness.Env, name string) {
	t.Helper()
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `, finalizers: [example.com/hold]}, data: {version: "1.0"}}`)
	t.Cleanup(func() { letGo(t, e, name) })
}

// letGo takes the finalizers off a ConfigMap.
func letGo(t *testing.T, e *harness.Env, name string) {
	t.Helper()
	_, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Patch(context.Background(), name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		assert.NoError(t, err)
	}
}

// otherNamespace returns the Env in a namespace of its own, where deployer has no
// rights.
func otherNamespace(t *testing.T, e *harness.Env) *harness.Env {
	t.Helper()
	return e.In(testcluster.Namespace(t))
}

// aGadget makes the kind Gadget and one of it.
func aGadget(t *testing.T, e *harness.Env) {
	t.Helper()
	installGadgets(t, e)
	e.Apply(gadget)
}

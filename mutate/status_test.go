package mutate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

// restoredStatus asserts that status and the owners of its fields are as they were.
func (i *item) restoredStatus() {
	i.t.Helper()
	assert.Equal(i.t, value(i.t, i.record.Before, "status"), value(i.t, i.now(), "status"))
	assert.Equal(i.t, statusEntries(i.record.Before), statusEntries(i.now()))
}

func statusEntries(obj *unstructured.Unstructured) []entry {
	var out []entry
	for _, e := range obj.GetManagedFields() {
		if e.Subresource == "status" {
			out = append(out, entry{Manager: e.Manager, Operation: string(e.Operation), Time: e.Time.UTC().String(), Fields: fields(e)})
		}
	}
	return out
}

// A content or a before-image that has a status does not write it where the kind has a
// subresource for it: what a controller makes of it meanwhile is no drift.
func TestAStatusInTheContentIsNotWrittenWhereItIsASubresource(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.readyWidget()
			i := e.prepare(0, kind, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 2}, status: {phase: Wanted}}")
			e.merge("controller", i.object, `{"status":{"phase":"Busy"}}`, "status")
			i.done()
			assert.Equal(t, int64(2), value(t, i.now(), "spec", "size"))
			i.undone()
			i.restored()
			assert.Equal(t, "Busy", value(t, i.now(), "status", "phase"))
		})
	}
}

func TestTheUndoOfACommittedChangeLeavesTheStatusToItsController(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.readyWidget()
	i := e.prepare(0, api.Patch, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 2}}").done()
	require.NoError(t, mutate.HandOver(t.Context(), i.change, i.owners, i.baseline, nil))
	undo := e.plan(1, api.Update, widget)
	content, _, _, err := undo.change.Invert(t.Context(), api.Update, []mutate.Original{{Record: i.record, First: i.record.Before}}, i.now())
	require.NoError(t, err)
	assert.NotContains(t, content, "status")
	undo.change.Content = content
	require.NoError(t, undo.tryPrepare())
	e.merge("controller", undo.object, `{"status":{"phase":"Busy"}}`, "status")
	undo.done()
	assert.Equal(t, value(t, i.record.Before, "spec"), value(t, i.now(), "spec"))
	assert.Equal(t, "Busy", value(t, i.now(), "status", "phase"))
}

// A controller writes the status between the read and the dry run: that is none of what the
// change does, and writing it again is no reason not to undo the change.
func TestAStatusThatComesWhileAChangeIsPreparedIsNotOfTheChange(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.readyWidget()
			i := e.plan(0, kind, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 2}}")
			i.wire.set(func(n int) {
				if n == 1 {
					e.merge("controller", i.object, `{"status":{"phase":"Busy"}}`, "status")
				}
			})
			require.NoError(t, i.tryPrepare())
			require.NotEqual(t, value(t, i.record.Before, "status"), value(t, i.now(), "status"))
			assert.NotContains(t, i.record.After.Object, "status")
			i.done()
			require.NoError(t, mutate.HandOver(t.Context(), i.change, i.owners, i.baseline, nil))
			e.merge("controller", i.object, `{"status":{"phase":"Idle"}}`, "status")
			_, _, _, err := e.plan(1, api.Update, widget).change.Invert(t.Context(), api.Update, []mutate.Original{{Record: i.record, First: i.record.Before}}, i.now())
			require.NoError(t, err)
		})
	}
}

func (e *env) readyWidget() {
	e.t.Helper()
	e.widgets()
	obj := e.create(widget)
	e.merge("controller", obj, widgetStatus, "status")
	e.age(obj)
}

func TestK11StatusOfACustomResourceIsPutBackWithItsOwners(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.readyWidget()
	i := e.prepare(0, api.Delete, widget).done()
	i.wire.requests()
	i.undone()
	i.sent("GET GET POST PATCH PATCH")
	i.restored()
	i.restoredStatus()
	i.undone()
	i.sent("GET")
}

func TestK11UndoGoesOnAfterACrashAtAnyRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.readyWidget()
	for n := range 5 {
		for _, lose := range []bool{false, true} {
			i := e.prepare(0, api.Delete, widget).done()
			interrupt := i.wire.refuseNth
			if lose {
				interrupt = i.wire.loseNth
			}
			interrupt(n)
			fails(t, i.undo(), errclass.Unknown, errclass.ServerUnavailable)
			i.wire.requests()
			i.undone()
			i.restored()
			i.restoredStatus()
		}
	}
}

// A controller is faster: what it says is true of the new object.
func TestK11StatusThatAControllerWroteMeanwhileIsTheirs(t *testing.T) {
	t.Parallel()
	for _, at := range []int{3, 4} {
		e := newEnv(t)
		e.readyWidget()
		i := e.prepare(0, api.Delete, widget).done()
		i.wire.requests()
		i.wire.set(func(n int) {
			if n == at {
				e.merge("controller", i.object, `{"status":{"phase":"Pending"}}`, "status")
			}
		})
		i.undone()
		i.restored()
		assert.Equal(t, "Pending", value(t, i.now(), "status", "phase"))
		assert.Len(t, statusEntries(i.now()), 1)
		assert.NotEqual(t, statusEntries(i.record.Before), statusEntries(i.now()))
		assert.Contains(t, i.report.Notes, "its status is what others have written since it was re-created")
	}
}

// Where status is no subresource it is a field like any other.
func TestK11StatusThatIsNoSubresourceComesBackWithTheObject(t *testing.T) {
	t.Parallel()
	const record = "{apiVersion: example.com/v1, kind: Record, metadata: {name: r}, spec: {size: 1}, status: {phase: Ready}}"
	e := newEnv(t)
	e.crd("Record", "records")
	e.create(record)
	i := e.prepare(0, api.Delete, record).done()
	i.wire.requests()
	i.undone()
	i.sent("GET GET POST PATCH")
	i.restored()
	assert.Equal(t, "Ready", value(t, i.now(), "status", "phase"))
}

// anything is the schema of a version of a kind that has no subresources.
const anything = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"

// crd installs a kind until the test ends, with these versions, or with v1 alone.
func (e *env) crd(kind, plural string, versions ...string) *unstructured.Unstructured {
	e.t.Helper()
	if len(versions) == 0 {
		versions = []string{"{name: v1, served: true, storage: true, " + anything + "}"}
	}
	obj := e.create(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.example.com}
spec:
  group: example.com
  names: {kind: ` + kind + `, plural: ` + plural + `}
  scope: Namespaced
  versions: [` + strings.Join(versions, ", ") + `]
`)
	for _, version := range value(e.t, obj, "spec", "versions").([]any) {
		e.served(kind, version.(map[string]any)["name"].(string))
	}
	return obj
}

// The status of the kinds of Kubernetes is what its controllers observe.
func TestK19StatusOfABuiltInKindIsLeftToItsControllers(t *testing.T) {
	t.Parallel()
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: example.com/a}]}}"
	e := newEnv(t)
	obj := e.create(pod)
	e.merge("kubelet", obj, `{"status":{"phase":"Running","podIP":"10.1.2.3"}}`, "status")
	i := e.prepare(0, api.Delete, pod)
	i.landed()
	i.undone()
	assert.Equal(t, "Pending", value(t, i.now(), "status", "phase"))
	assert.Equal(t, []string{"it is a new Pod, and starts over"}, i.report.Notes)
	assert.Equal(t, entries(i.record.Before), entries(i.now()))
}

// A Pod that the scheduler has placed may get another Node.
func TestANewPodTellsThatItsNodeMayDiffer(t *testing.T) {
	t.Parallel()
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {schedulerName: none, terminationGracePeriodSeconds: 0, containers: [{name: a, image: example.com/a}]}}"
	e := newEnv(t)
	e.create(pod)
	require.NoError(t, e.Kube.CoreV1().Pods(e.namespace).Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "somewhere"},
	}, metav1.CreateOptions{}))
	i := e.prepare(0, api.Delete, pod)
	i.landed()
	i.undone()
	assert.Equal(t, []string{"it is a new Pod, and starts over, on a Node that the scheduler chooses: .spec.nodeName may differ"}, i.report.Notes)
	_, placed, _ := unstructured.NestedString(i.now().Object, "spec", "nodeName")
	assert.False(t, placed)
}

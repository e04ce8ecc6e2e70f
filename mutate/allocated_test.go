package mutate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

const (
	frontend = "{apiVersion: v1, kind: Service, metadata: {name: frontend}, spec: {selector: {app: shop}, ports: [{name: http, port: 80}]}}"
	// frontendOut makes the API server choose node ports, which a dry run cannot know.
	frontendOut = "{apiVersion: v1, kind: Service, metadata: {name: frontend}, spec: {type: NodePort, selector: {app: shop}, ports: [{name: http, port: 80}, {name: admin, port: 81}]}}"
)

func nodePorts(t *testing.T, i *item) []any {
	t.Helper()
	var out []any
	for _, p := range value(t, i.now(), "spec", "ports").([]any) {
		out = append(out, p.(map[string]any)["nodePort"])
	}
	return out
}

// What the API server has chosen when the change was made is part of the change,
// although no dry run could tell.
func TestAllocatedNodePortsAreRolledBack(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			e := newEnv(t)
			e.create(frontend)
			i := e.prepare(0, kind, frontendOut).done()
			predicted := i.record.After.Object["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["nodePort"]
			require.NotEqual(t, predicted, nodePorts(t, i)[0], "the dry run guessed the port: the test shows nothing")
			i.undone()
			i.restored()
			assert.Equal(t, "ClusterIP", value(t, i.now(), "spec", "type"))
			assert.Equal(t, []any{nil}, nodePorts(t, i))
		})
	}
}

func TestANodePortThatSomebodyChoseSinceIsAConflict(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(frontend)
	i := e.prepare(0, api.Patch, frontendOut).done()
	e.edit(i.object, `[{"op":"replace","path":"/spec/ports/1/nodePort","value":31987}]`)
	fails(t, patiently(i.undo), errclass.Conflict, errclass.FieldConflict, `.spec.ports[port=81,protocol="TCP"] of somebody`)
}

// A Service that has had no cluster IP, no node ports or no load balancer for a while gets its own back.
func TestWhatAServiceHasGivenBackIsRolledBack(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ before, patch string }{
		"the cluster IP":    {frontend, "{apiVersion: v1, kind: Service, metadata: {name: frontend}, spec: {type: ExternalName, externalName: example.com}}"},
		"the node ports":    {frontendOut, "{apiVersion: v1, kind: Service, metadata: {name: frontend}, spec: {type: ClusterIP}}"},
		"the load balancer": {strings.ReplaceAll(frontendOut, "NodePort", "LoadBalancer"), "{apiVersion: v1, kind: Service, metadata: {name: frontend}, spec: {type: ClusterIP}}"},
		"all of it":         {strings.ReplaceAll(frontendOut, "NodePort", "LoadBalancer"), "{apiVersion: v1, kind: Service, metadata: {name: frontend}, spec: {type: ExternalName, externalName: example.com}}"},
	} {
		t.Run(what, func(t *testing.T) {
			e := newEnv(t)
			e.create(c.before)
			i := e.prepare(0, api.Patch, c.patch).done()
			i.undone()
			i.restored()
		})
	}
}

// K19: between prepare and commit the control plane may write what a Patch does
// not touch.
func TestWhatTheControlPlaneWritesIsNoDriftForAPatch(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(deployment)
	for _, kind := range []api.ChangeType{api.Patch, api.Update} {
		i := e.prepare(0, kind, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {tier: front}}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'example.com/web:1'}]}}}}")
		replicas := int64(7)
		if kind == api.Update {
			replicas = 8
		}
		e.merge("kube-controller-manager", obj, `{"spec":{"replicas":`+string('0'+rune(replicas))+`}}`, "scale")
		if kind == api.Update {
			fails(t, patiently(i.do), errclass.Conflict, errclass.Drifted, ".spec.replicas of kube-controller-manager, now 8")
			continue
		}
		i.done()
		assert.Equal(t, replicas, value(t, i.now(), "spec", "replicas"))
		i.undone()
		assert.Equal(t, replicas, value(t, i.now(), "spec", "replicas"))
	}
}

func TestWhatTheControlPlaneWritesOverAPatchIsDrift(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(deployment)
	i := e.prepare(0, api.Patch, deploymentChanged)
	e.merge("kube-controller-manager", obj, `{"spec":{"replicas":7}}`, "scale")
	fails(t, patiently(i.do), errclass.Conflict, errclass.Drifted, ".spec.replicas of kube-controller-manager, now 7")
}

func TestAWriteOfAnybodyElseIsDrift(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(deployment)
	i := e.prepare(0, api.Patch, deploymentChanged)
	e.merge("somebody", obj, `{"metadata":{"annotations":{"note":"x"}}}`)
	err := patiently(i.do)
	fails(t, err, errclass.Conflict, errclass.Drifted, ".metadata.annotations.note of somebody")
}

// Where status is no subresource, a change of it is rolled back like any other, and a
// controller's write to it is one of another client.
func TestAStatusThatIsNoSubresourceIsRolledBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.crd("Gauge", "gauges")
	const head = "{apiVersion: example.com/v1, kind: Gauge, metadata: {name: g}, "
	for name, change := range map[string]string{"changed": "status: {phase: new}}", "removed": "}"} {
		t.Run(name, func(t *testing.T) {
			e.create(head + "spec: {size: 1}, status: {phase: old, seen: yes}}")
			kind := api.Patch
			if name == "removed" {
				kind = api.Update
			}
			i := e.prepare(0, kind, head+"spec: {size: 2}, "+change).done()
			i.undone()
			i.restored()
			assert.Equal(t, "old", value(t, i.now(), "status", "phase"))
			i = e.prepare(0, api.Patch, head+"status: {phase: new}}")
			e.merge("controller", i.object, `{"status":{"phase":"theirs"}}`)
			fails(t, i.do(), errclass.Conflict, errclass.Drifted, ".status.phase of controller")
			i = e.prepare(0, api.Patch, head+"spec: {size: 3}}")
			e.merge("controller", i.object, `{"status":{"phase":"again"}}`)
			i.done()
			e.merge("controller", i.object, `{"status":{"phase":"and again"}}`)
			i.undone()
			assert.Equal(t, "and again", value(t, i.now(), "status", "phase"))
			e.remove(i.object)
		})
	}
}

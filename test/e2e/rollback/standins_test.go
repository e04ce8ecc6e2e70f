package rollback

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// standIn is an object that a controller re-creates by itself once it is deleted.
type standIn struct {
	what   string
	given  string // applied by another client
	object string // what is deleted; NAME is asked for by name
	name   func(t *testing.T, e *harness.Env) string
	after  string // changes beside the deletion, after it
	// poke is what the controller looks at, where it does not see the deletion.
	poke string
	// own is set where the deleted object was the controller's already: the API server does
	// not let the times of its fields alone be changed.
	own bool
	// unlike is set where the controller's has another content, which cannot be changed.
	unlike bool
	loss   bool
	// wide is set for an object that is in no namespace.
	wide bool
}

const kept = `{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{name: pg, port: 5432}]}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: db}, subsets: [{addresses: [{ip: 192.0.2.10}], ports: [{name: pg, port: 5432}]}]}`

const selected = "  - {target: {apiVersion: v1, kind: Service, name: db}, type: Patch, content: {spec: {selector: {app: db}}}}\n"

const workloadOf = `{apiVersion: apps/v1, kind: KIND, metadata: {name: web}, spec: {MORE
  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: example.com/a}]}}}}`

func underController(kind, more string) string {
	return strings.NewReplacer("KIND", kind, "MORE", more).Replace(workloadOf)
}

// standIns are those that were tried on the API server.
var standIns = []standIn{
	{what: "Endpoints kept by hand, when the Service gets a selector afterwards", given: kept, object: "v1 Endpoints/db", after: selected},
	{what: "the ConfigMap with the certificate of the cluster", object: "v1 ConfigMap/kube-root-ca.crt", own: true},
	{what: "the ServiceAccount default", object: "v1 ServiceAccount/default", loss: true},
	{what: "the ServiceAccount default with content", given: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, labels: {team: shop}}, imagePullSecrets: [{name: registry}]}",
		object: "v1 ServiceAccount/default", loss: true},
	{what: "the ReplicaSet of a Deployment", given: underController("Deployment", "replicas: 0,"), object: "apps/v1 ReplicaSet/NAME",
		name: first("apps/v1 ReplicaSet"), own: true},
	{what: "the ControllerRevision of a StatefulSet", given: underController("StatefulSet", "replicas: 0, serviceName: web,"), object: "apps/v1 ControllerRevision/NAME",
		own: true, name: first("apps/v1 ControllerRevision"), poke: "apps/v1 StatefulSet/web"},
	{what: "the ControllerRevision of a DaemonSet", given: underController("DaemonSet", ""), object: "apps/v1 ControllerRevision/NAME",
		own: true, name: first("apps/v1 ControllerRevision")},
	{what: "the APIService of a kind", object: "apiregistration.k8s.io/v1 APIService/NAME", wide: true, own: true, name: func(t *testing.T, e *harness.Env) string {
		t.Helper()
		defineLimits(t, e, groupOf(e))
		return "v1." + groupOf(e)
	}},
	{what: "the Pod of a StatefulSet", given: underController("StatefulSet", "replicas: 1, serviceName: web,"), object: "v1 Pod/web-0", unlike: true},
}

// first returns the name of an object of a kind that a controller has named.
func first(kind string) func(*testing.T, *harness.Env) string {
	return func(_ *testing.T, e *harness.Env) string {
		var name string
		e.Until("there is a "+kind, func() bool {
			name = nameOfOne(e, kind)
			return name != ""
		})
		return name
	}
}

func TestWhatAControllerMakesInPlaceOfADeletedObjectIsReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range standIns {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			if e.Refuse(); c.wide {
				e.ClusterWide()
			}
			if c.given != "" {
				e.Apply(c.given)
			}
			object := c.object
			if c.name != nil {
				object = strings.ReplaceAll(object, "NAME", c.name(t, e))
			}
			var before *unstructured.Unstructured
			e.Until("there is one", func() bool { before = e.Object(object); return before != nil })
			e.Start(harness.WithPolicy(unaided), harness.Acting(harness.Around{Undo: func(string, int) {
				// The controller is sure to come first.
				if c.poke != "" {
					e.Merge("person", c.poke, `{"metadata":{"annotations":{"look":"again"}}}`)
				}
				e.Until("it is made anew", func() bool {
					live := e.Object(object)
					return live != nil && live.GetUID() != before.GetUID()
				})
			}}))

			txn := e.Run("txn", "\nchanges:\n"+deletionOf(object, c.loss)+c.after+fixture.RefusedAtCommit)

			item := txn.Status.Items[0]
			if c.unlike {
				assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
				assert.Equal(t, errclass.ControllerMade, item.Reason)
				assert.Contains(t, item.Message, "kube-controller-manager has re-created it")
				return
			}
			require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			if c.own {
				assert.Equal(t, untimed(before), untimed(e.Object(object)))
			} else {
				e.Same(before, object)
			}
			e.NothingLeft("txn")
		})
	}
}

// untimed is an object with who owns its fields, and not since when.
func untimed(obj *unstructured.Unstructured) map[string]any {
	out := fieldmerge.Strip(obj)
	var owners []metav1.ManagedFieldsEntry
	for _, e := range obj.GetManagedFields() {
		if e.Time = nil; e.Subresource == "" {
			owners = append(owners, e)
		}
	}
	out.SetManagedFields(owners)
	return out.Object
}

func deletionOf(object string, loss bool) string {
	version, rest, _ := strings.Cut(object, " ")
	kind, name, _ := strings.Cut(rest, "/")
	return fmt.Sprintf("  - {target: {apiVersion: %s, kind: %s, name: %s}, type: Delete, propagationPolicy: Background, acceptLoss: %t}\n", version, kind, name, loss)
}

// What a person has put there is theirs, even where a controller has made it.
func TestAStandInThatSomebodyHasWrittenIsTheirs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	e.Apply(kept)
	before := e.Object("Endpoints/db")
	e.Start(harness.WithPolicy(unaided), harness.Acting(harness.Around{Undo: func(string, int) {
		e.Until("it is made anew", func() bool {
			live := e.Object("Endpoints/db")
			return live != nil && live.GetUID() != before.GetUID()
		})
		e.Merge("person", "Endpoints/db", `{"metadata":{"labels":{"theirs":"yes"}}}`)
	}}))

	txn := e.Run("txn", "\nchanges:\n"+deletionOf("v1 Endpoints/db", false)+selected+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.AlreadyExists, txn.Status.Items[0].Reason)
	assert.Equal(t, "yes", e.Value("Endpoints/db", "metadata", "labels", "theirs"))
	e.NothingLeft("txn")
}

// nameOfOne is the name of an object of a kind in the namespace of the test; empty if there
// is none.
func nameOfOne(e *harness.Env, kind string) string {
	version, name, _ := strings.Cut(kind, " ")
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return ""
	}
	client, err := e.For(gv.WithKind(name), e.Namespace)
	if err != nil {
		return ""
	}
	list, err := client.List(e.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	return list.Items[0].GetName()
}

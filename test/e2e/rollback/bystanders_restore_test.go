package rollback

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

const retained = `
changes:
  - type: Patch
    target: {apiVersion: v1, kind: PersistentVolume, name: NAME}
    content:
      metadata: {labels: {kept: "true"}}
      spec: {persistentVolumeReclaimPolicy: Retain}
` + gate

// A deletion of a claim while its volume is retained is not meant for the data.
func TestARollbackSparesAVolumeWhoseClaimIsDeletedWhileItIsRetained(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	name := e.Namespace
	file := boundVolume(t, e)
	e.Start()
	e.Submit("volume", strings.ReplaceAll(retained, "NAME", name))
	e.Until("all changes are made", func() bool { return e.Object("ConfigMap/gate") != nil })
	releaseVolume(t, e)
	txn := cancelAtGate(e, "volume")

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	item := txn.Status.Items[0]
	assert.Equal(t, api.ItemUnresolved, item.State)
	assert.Equal(t, errclass.Irreversible, item.Reason, harness.Describe(txn))
	assert.Contains(t, item.Message, "PersistentVolumeClaim "+name+"/data")
	require.Len(t, item.Conflicts, 1)
	assert.Equal(t, ".spec.persistentVolumeReclaimPolicy", item.Conflicts[0].Field)
	assert.Equal(t, "<absent>", e.Value("PersistentVolume/"+name, "metadata", "labels", "kept"), "every other field is restored")
	assert.Equal(t, "Retain", e.Value("PersistentVolume/"+name, "spec", "persistentVolumeReclaimPolicy"))
	assert.Nil(t, e.Object("PersistentVolume/"+name).GetDeletionTimestamp())
	assert.FileExists(t, file)
	assert.Len(t, e.ItemManagers("PersistentVolume/"+name), 1, "the field is not given back with another value")
	e.NothingLeft("volume")
}

// With its claim in place, the policy is restored.
func TestARollbackRestoresTheReclaimPolicyOfABoundVolume(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	name := e.Namespace
	file := boundVolume(t, e)
	e.Start()
	e.Submit("volume", strings.ReplaceAll(retained, "NAME", name))
	txn := cancelAtGate(e, "volume")
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "Delete", e.Value("PersistentVolume/"+name, "spec", "persistentVolumeReclaimPolicy"))
	assert.FileExists(t, file)
}

const (
	withClaims = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: x}
spec:
  replicas: 1
  serviceName: x
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: x}}
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}
  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: example.com/a}]}}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}
`
	scaledUp = `
changes:
  - type: Patch
    target: {apiVersion: apps/v1, kind: StatefulSet, name: x}
    acceptLoss: true
    content: {metadata: {labels: {size: large}}, spec: {replicas: 3}}
` + gate
	olderClaim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-x-1}, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}"
)

// scaledUpTo waits for the claims of a scale-up.
func scaledUpTo(e *harness.Env, claims ...string) {
	e.Until("the claims are there", func() bool {
		for _, name := range claims {
			if e.Object("PersistentVolumeClaim/"+name) == nil {
				return false
			}
		}
		return true
	})
}

func replicas(e *harness.Env) int64 {
	n, _, _ := unstructured.NestedInt64(e.Object("apps/v1 StatefulSet/x").Object, "spec", "replicas")
	return n
}

// A scale-down deletes claims, and those that are older than the scale-up with them.
func TestARollbackOfAScaleUpSparesClaimsThatWereThereBefore(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	// It has made claims before, and retained them.
	retaining := strings.Replace(withClaims, "whenScaled: Delete", "whenScaled: Retain", 1)
	e.Apply(strings.Replace(retaining, "replicas: 1", "replicas: 2", 1))
	scaledUpTo(e, "data-x-0", "data-x-1")
	e.Until("there is a second Pod", func() bool { return e.Object("Pod/x-1") != nil })
	e.Apply(retaining)
	e.Until("the second Pod is gone", func() bool { return e.Object("Pod/x-1") == nil })
	e.Apply(withClaims)
	uid := e.Object("PersistentVolumeClaim/data-x-1").GetUID()
	e.NextSecond()
	e.Start()
	e.Submit("set", scaledUp)
	scaledUpTo(e, "data-x-2")
	txn := cancelAtGate(e, "set")

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	item := txn.Status.Items[0]
	assert.Equal(t, errclass.Irreversible, item.Reason, harness.Describe(txn))
	assert.Contains(t, item.Message, "data-x-1")
	assert.NotContains(t, item.Message, "data-x-2")
	assert.EqualValues(t, 3, replicas(e))
	assert.Equal(t, "<absent>", e.Value("apps/v1 StatefulSet/x", "metadata", "labels", "size"), "every other field is restored")
	claim := e.Object("PersistentVolumeClaim/data-x-1")
	require.NotNil(t, claim)
	assert.Equal(t, uid, claim.GetUID())
	assert.Nil(t, claim.GetDeletionTimestamp())
	e.NothingLeft("set")
}

// Such a scale-up is refused beforehand, unless the change accepts that.
func TestAScaleUpThatCannotBeRolledBackWithoutOlderClaimsIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(withClaims)
	e.Apply(olderClaim)
	e.Start()
	txn := e.Run("set", strings.Replace(scaledUp, "acceptLoss: true", "acceptLoss: false", 1))
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Irreversible, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, "data-x-1")
	assert.EqualValues(t, 1, replicas(e))
}

// The claims that a scale-up has made go with it.
func TestARollbackOfAScaleUpIsExact(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(withClaims)
	scaledUpTo(e, "data-x-0")
	e.Start()
	e.Submit("set", strings.Replace(scaledUp, "acceptLoss: true", "acceptLoss: false", 1))
	scaledUpTo(e, "data-x-1", "data-x-2")
	txn := cancelAtGate(e, "set")
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Until("what the scale-up has made is gone", func() bool {
		return e.Object("PersistentVolumeClaim/data-x-1") == nil && e.Object("PersistentVolumeClaim/data-x-2") == nil
	})
	assert.NotNil(t, e.Object("PersistentVolumeClaim/data-x-0"))
}

const selecting = `
changes:
  - type: Patch
    target: {apiVersion: v1, kind: Service, name: database}
    content: {spec: {selector: {app: x}}}
` + gate

// The control plane overwrites the Endpoints of a Service that selects Pods.
func TestEndpointsMadeByHandAreNotOverwritten(t *testing.T) {
	t.Parallel()
	const service = "{apiVersion: v1, kind: Service, metadata: {name: database}, spec: {ports: [{port: 5432}]}}"
	for _, row := range []struct{ name, given, spec string }{
		{"by a Patch that sets a selector", service, selecting},
		{"by the Create of a Service with a selector", "", strings.Replace(external, "spec: {", "spec: {selector: {app: x}, ", 1) + strings.TrimPrefix(gate, "\n")},
	} {
		row.spec = strings.Replace(row.spec, "timeout: 150s", "timeout: 10s", 1)
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			if row.given != "" {
				e.Apply(row.given)
			}
			e.Apply(endpoints)
			before := e.Object("Endpoints/database")
			e.Start()
			txn := e.Run("service", row.spec)
			assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, errclass.Irreversible, txn.Status.Items[0].Reason, harness.Describe(txn))
			assert.Contains(t, txn.Status.Items[0].Message, "Endpoints "+e.Namespace+"/database")
			e.Same(before, "Endpoints/database")

			alone, _, _ := strings.Cut(row.spec, "  - name: gate")
			txn = e.Run("alone", alone)
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			assert.Contains(t, strings.Join(txn.Status.Items[0].Warnings, " "), "Endpoints "+e.Namespace+"/database")
		})
	}
}

// Endpoints that are made for a Service that selects nothing any more are to stay.
func TestARollbackSparesEndpointsMadeWhileTheServiceSelectsNothing(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: v1, kind: Service, metadata: {name: database}, spec: {selector: {app: x}, ports: [{port: 5432}]}}")
	e.Until("the control plane has made Endpoints", func() bool { return e.Object("Endpoints/database") != nil })
	e.Start()
	e.Submit("service", `
changes:
  - type: Update
    target: {apiVersion: v1, kind: Service, name: database}
    content: {metadata: {labels: {by: hand}}, spec: {ports: [{port: 5432}]}}
`+gate)
	e.Until("all changes are made", func() bool { return e.Object("ConfigMap/gate") != nil })
	e.Apply(endpoints)
	txn := cancelAtGate(e, "service")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Irreversible, txn.Status.Items[0].Reason, harness.Describe(txn))
	assert.Equal(t, "<absent>", e.Value("Service/database", "spec", "selector", "app"))
	assert.Equal(t, "<absent>", e.Value("Service/database", "metadata", "labels", "by"), "every other field is restored")
	subsets, _, _ := unstructured.NestedSlice(e.Object("Endpoints/database").Object, "subsets")
	assert.Len(t, subsets, 1)
}

// A claim that another item has changed, and not created, is older than the scale-up all the same.
func TestARollbackOfAScaleUpSparesAClaimThatAnotherItemHasChanged(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(olderClaim)
	e.Apply(withClaims)
	scaledUpTo(e, "data-x-0")
	uid := e.Object("PersistentVolumeClaim/data-x-1").GetUID()
	e.NextSecond()
	e.Start()
	txn := e.Run("set", `
changes:
  - type: Patch
    target: {apiVersion: v1, kind: PersistentVolumeClaim, name: data-x-1}
    content: {metadata: {labels: {by: janus}}}
  - type: Patch
    target: {apiVersion: apps/v1, kind: StatefulSet, name: x}
    acceptLoss: true
    content: {spec: {replicas: 3}}
    readyWhen: {expression: "has(object.metadata.labels.go)", timeout: 3s}
`)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Irreversible, txn.Status.Items[1].Reason, harness.Describe(txn))
	assert.Equal(t, uid, e.Object("PersistentVolumeClaim/data-x-1").GetUID())
	assert.Nil(t, e.Object("PersistentVolumeClaim/data-x-1").GetDeletionTimestamp())
	assert.EqualValues(t, 3, replicas(e))
}

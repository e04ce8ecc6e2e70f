package concurrency

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/mutate"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// crossing is a Transaction that patches a key of its own in every one of so many
// ConfigMaps, in one order or the other.
func crossing(n, maps int) string {
	var b strings.Builder
	b.WriteString("lockTimeout: 5s\ntimeout: 10m\nchanges:\n")
	for i := range maps {
		at := i
		if n%2 == 1 {
			at = maps - 1 - i
		}
		fmt.Fprintf(&b, "  - target: {apiVersion: v1, kind: ConfigMap, name: map-%d}\n    type: Patch\n    content: {data: {key-%d: \"yes\"}}\n", at, n)
	}
	return b.String()
}

const (
	crossings = 20
	maps      = 3
)

func applyMaps(e *harness.Env) {
	for i := range maps {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: map-%d}, data: {kept: kept}}", i))
	}
}

// Two Janus without leader election work on the same Transactions, which want the
// same targets in opposite orders. The preconditions are the fence.
func TestTwoJanusAtOnceKeepTheGuarantees(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	applyMaps(e)
	e.Start()
	e.Start()

	for n := range crossings {
		e.Submit(fmt.Sprintf("txn-%d", n), crossing(n, maps))
	}
	ended := make([]*api.Transaction, crossings)
	for n := range crossings {
		ended[n] = e.Ended(fmt.Sprintf("txn-%d", n))
	}

	writes := 0
	for n, txn := range ended {
		assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, "%s: %s", txn.Name, harness.Describe(txn))
		for i := range maps {
			want := "<absent>"
			if txn.Status.Phase == api.PhaseCommitted {
				want = "yes"
			}
			assert.Equal(t, want, e.Value(fmt.Sprintf("ConfigMap/map-%d", i), "data", fmt.Sprintf("key-%d", n)), "of %s", txn.Name)
		}
		e.ClearedUp(txn.Name)
		e.NothingLeft(txn.Name)
		writes += maps
	}
	assertActedAsTheServiceAccount(t, e, "configmaps", "map-")
	assert.Len(t, effective(e, "map-"), writes, "every item is written once")
}

// changesOf are one change of each type, by which the second item is made.
var secondChanges = map[string]string{
	"Patch":  `{target: {apiVersion: v1, kind: ConfigMap, name: second}, type: Patch, content: {data: {version: "2"}}}`,
	"Update": `{target: {apiVersion: v1, kind: ConfigMap, name: second}, type: Update, content: {data: {version: "2"}}}`,
	"Remove": `{target: {apiVersion: v1, kind: ConfigMap, name: second}, type: Update, content: {}}`,
	"Create": `{target: {apiVersion: v1, kind: ConfigMap, name: third}, type: Create, content: {data: {version: "2"}}}`,
	"Delete": `{target: {apiVersion: v1, kind: ConfigMap, name: second}, type: Delete}`,
}

// A Janus hangs just before it sends a change, another takes the Transaction over
// and makes it; then the first wakes up before the second has recorded that. The
// first is refused, and must not take that for proof that the change is not in
// effect.
func TestAJanusThatWakesUpLateDoesNotWriteOffWhatAnotherHasMade(t *testing.T) {
	t.Parallel()
	for name, change := range secondChanges {
		t.Run(name, func(t *testing.T) {
			e := harness.New(t)
			e.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: first}
data: {version: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second}
data: {version: "1", other: "1"}
`)
			first, second, third := e.Object("ConfigMap/first"), e.Object("ConfigMap/second"), e.Object("ConfigMap/third")
			asleep, awake := make(chan struct{}), make(chan struct{})
			made, record := make(chan struct{}), make(chan struct{})
			once, twice := sync.OnceFunc(func() { close(asleep); <-awake }), sync.OnceFunc(func() { close(made); <-record })
			wrote := make(chan struct{})
			done := sync.OnceFunc(func() { close(wrote) })
			afterwards := func(*api.Transaction) {
				select {
				case <-awake:
					done()
				default:
				}
			}
			e.Start(harness.Acting(harness.Around{Do: func(_ string, item int) {
				if item == 1 {
					once()
				}
			}}), harness.Recording(harness.Journaling{After: afterwards, Refused: afterwards}))
			e.Submit("txn", `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: first}
    type: Patch
    content: {data: {version: "2"}}
  - `+change)

			<-asleep
			e.Start(harness.Recording(harness.Journaling{Before: func(t *api.Transaction) {
				if t.Status.Items[1].State == api.ItemCommitted {
					twice()
				}
			}}))
			<-made
			close(awake)
			<-wrote
			close(record)

			txn := e.Ended("txn")
			t.Log(harness.Describe(txn))
			if txn.Status.Phase == api.PhaseCommitted {
				assert.Equal(t, "2", e.Value("ConfigMap/first", "data", "version"))
				return
			}
			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			e.Same(first, "ConfigMap/first")
			e.Same(second, "ConfigMap/second")
			e.Same(third, "ConfigMap/third")
		})
	}
}

// A Janus hangs before it prepares, another commits the Transaction and clears up;
// then the first wakes up and prepares.
func TestAJanusThatPreparesTooLateLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{"Committed": fixture.PatchAB, "RolledBack": fixture.PatchAB + fixture.RefusedAtCommit} {
		t.Run(name, func(t *testing.T) {
			e := harness.New(t)
			e.Apply(fixture.AB)
			e.Refuse()
			asleep, awake, woken := make(chan struct{}), make(chan struct{}), make(chan struct{})
			done := sync.OnceFunc(func() { close(woken) })
			afterwards := func(*api.Transaction) {
				select {
				case <-awake:
					done()
				default:
				}
			}
			slow := e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.InPhase(api.PhasePreparing), func() {
				close(asleep)
				<-awake
			}), Refused: afterwards}))
			e.Submit("txn", spec)
			<-asleep
			e.Start()
			txn := e.Ended("txn")
			assert.Equal(t, name, string(txn.Status.Phase), harness.Describe(txn))

			close(awake)

			<-woken
			e.Until("the late one has let go", func() bool {
				images, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=janus,janus.io/transaction=txn"})
				leases, err2 := e.Kube.CoordinationV1().Leases(e.Namespace).List(t.Context(), metav1.ListOptions{})
				if err != nil || err2 != nil || len(leases.Items) > 0 {
					return false
				}
				for _, image := range images.Items {
					if len(image.Finalizers) > 0 || name == "Committed" {
						return false
					}
				}
				return true
			})
			slow.Stop()
			e.NothingLeft("txn")
		})
	}
}

// effective returns the writes that have changed ConfigMaps with a prefix.
func effective(e *harness.Env, prefix string) []testcluster.AuditEvent {
	return testcluster.Filter(e.Audit(), testcluster.InNamespace(e.Namespace), testcluster.OnResource("", "configmaps"), testcluster.Persisted,
		func(r testcluster.AuditEvent) bool { return strings.HasPrefix(r.Name, prefix) && !handedOver(r) })
}

// handedOver reports whether a request gave fields to other owners after a commit.
func handedOver(r testcluster.AuditEvent) bool {
	return strings.Contains(r.RequestURI, "fieldManager="+mutate.DefaultManager+"&")
}

// assertActedAsTheServiceAccount holds every request to the targets against
// guarantee 9.
func assertActedAsTheServiceAccount(t *testing.T, e *harness.Env, resource, prefix string) {
	t.Helper()
	requests := testcluster.Filter(e.Audit(), testcluster.InNamespace(e.Namespace), testcluster.OnResource("", resource),
		func(r testcluster.AuditEvent) bool { return strings.HasPrefix(r.Name, prefix) })
	assert.NotEmpty(t, requests)
	for _, r := range requests {
		assert.Equal(t, "system:serviceaccount:"+e.Namespace+":deployer", r.ImpersonatedUser, "%s %s", r.Verb, r.RequestURI)
	}
}

package input

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// A ResourceQuota refuses what it limits until its controller has counted that. Of a kind that has
// just been installed it counts none for up to six minutes.
func TestAQuotaThatHasNotBeenCountedIsWaitedFor(t *testing.T) {
	t.Parallel()
	const create = "changes: [{type: Create, target: {apiVersion: v1, kind: Service, name: a}, content: {spec: {ports: [{port: 80}]}}}]"
	for name, c := range map[string]struct {
		spec   string
		before string
		around func(uncount func()) harness.Around
		ends   api.Phase
	}{
		"when a change is tried": {spec: create, ends: api.PhaseCommitted},
		"when a change is made": {spec: create, ends: api.PhaseCommitted, around: func(uncount func()) harness.Around {
			return harness.Around{Do: func(string, int) { uncount() }}
		}},
		"when a deletion is rolled back": {
			before: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}",
			spec: `
changes:
- {type: Delete, target: {apiVersion: v1, kind: Service, name: a}}
- {type: Await, target: {apiVersion: v1, kind: ConfigMap, name: never}, readyWhen: {status: Ready, timeout: 1s}}`,
			around: func(uncount func()) harness.Around { return harness.Around{Undo: func(string, int) { uncount() }} },
			ends:   api.PhaseRolledBack,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.ApplyQuota(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: five}, spec: {hard: {count/services: "5"}}}`)
			if c.before != "" {
				e.Apply(c.before)
			}
			uncounted := false
			uncount := func() {
				if !uncounted {
					uncounted = true
					uncountQuota(t, e)
				}
			}
			if c.around == nil {
				uncount()
				e.Start()
			} else {
				e.Start(harness.Acting(c.around(uncount)))
			}
			e.Submit("release", c.spec)
			waiting := func(txn *api.Transaction) bool {
				_, reason, message := harness.Condition(txn, api.ConditionReconciling)
				return reason == errclass.NotInEffect && strings.Contains(message, "status unknown for quota: five")
			}
			txn := e.Await("release", "waiting for the quota", func(txn *api.Transaction) bool {
				return waiting(txn) || txn.Status.Phase.Terminal()
			})
			require.True(t, waiting(txn), harness.Describe(txn))
			// Its controller counts again when its spec changes.
			e.Apply(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: five}, spec: {hard: {count/services: "6"}}}`)
			txn = e.Ended("release")
			assert.Equal(t, c.ends, txn.Status.Phase, harness.Describe(txn))
			assert.Zero(t, txn.Status.Failures, "a wait counts as a failed attempt")
			assert.NotNil(t, e.Object("Service/a"))
			e.NothingLeft("release")
		})
	}
}

// A change that is refused for a quota which the same Transaction deletes or changes first is made
// when its turn comes: by then nothing may have to be counted any more.
func TestAQuotaThatTheTransactionChangesIsNotWaitedForBeforehand(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"deletes it": "{type: Delete, target: {apiVersion: v1, kind: ResourceQuota, name: five}}",
		"raises it":  "{type: Patch, target: {apiVersion: v1, kind: ResourceQuota, name: five}, content: {spec: {hard: {count/services: \"7\"}}}, force: true}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.ApplyQuota(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: five}, spec: {hard: {count/services: "5"}}}`)
			uncountQuota(t, e)
			e.Start()
			e.Submit("release", `
changes:
- `+first+`
- {type: Create, target: {apiVersion: v1, kind: Service, name: a}, content: {spec: {ports: [{port: 80}]}}}`)
			txn := e.Ended("release")
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, txn.Status.Items[0].Name, txn.Status.Items[1].DeferredBy)
			e.NothingLeft("release")
		})
	}
}

// Where the quota is of the same Transaction, a rollback deletes it before it waits for the count.
func TestARollbackDoesNotWaitForTheCountOfItsOwnQuota(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}")
	uncounted := false
	e.Start(harness.Acting(harness.Around{Undo: func(string, int) {
		if !uncounted {
			uncounted = true
			uncountQuota(t, e)
		}
	}}))
	txn := e.Run("release", `
changes:
- {type: Create, target: {apiVersion: v1, kind: ResourceQuota, name: five}, content: {spec: {hard: {count/services: "5"}}}, readyWhen: {status: Ready}}
- {type: Delete, target: {apiVersion: v1, kind: Service, name: a}}
- {type: Await, target: {apiVersion: v1, kind: ConfigMap, name: never}, readyWhen: {status: Ready, timeout: 1s}}`)
	assert.True(t, uncounted)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.NotNil(t, e.Object("Service/a"))
	e.NothingLeft("release")
}

// uncountQuota makes the quota of a namespace as it is while its controller cannot count.
func uncountQuota(t *testing.T, e *harness.Env) {
	t.Helper()
	ctx := t.Context()
	quotas := e.Kube.CoreV1().ResourceQuotas(e.Namespace)
	quota, err := quotas.Get(ctx, "five", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, resource.MustParse("5"), quota.Status.Hard["count/services"])
	quota.Status.Used = nil
	_, err = quotas.UpdateStatus(ctx, quota, metav1.UpdateOptions{})
	require.NoError(t, err)
	// Admission goes by a copy.
	require.NoError(t, harness.Poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := e.Kube.CoreV1().Services(e.Namespace).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "asked"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "status unknown for quota"), nil
	}))
}

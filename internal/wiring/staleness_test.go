package wiring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

const lateness = time.Second

func TestACallThatTookLongAsksWhetherItIsLate(t *testing.T) {
	known := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: "uid-1", ResourceVersion: "7"}}
	for name, row := range map[string]struct {
		live   *unstructured.Unstructured
		after  time.Duration
		anyway bool
		late   bool
	}{
		"at once, and asked anyway":          {live: stored("uid-1", "8"), anyway: true, late: true},
		"at once, nothing is asked":          {live: nil, after: lateness - time.Millisecond},
		"later, and it is as it was":         {live: stored("uid-1", "7"), after: lateness},
		"later, and it has been written":     {live: stored("uid-1", "8"), after: lateness, late: true},
		"later, and it is gone":              {live: nil, after: lateness, late: true},
		"later, and another has taken place": {live: stored("uid-2", "7"), after: lateness, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := serving(row.live)
			clock := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
			confirm := staleness{journal: NewJournal(client), clock: clock, lateness: lateness}.begin(known)
			clock.SetTime(clock.Now().Add(row.after))
			err := confirm(t.Context(), row.anyway)
			if row.late {
				require.Error(t, err)
				assert.Equal(t, errclass.Retryable, errclass.ClassOf(err), "the Transaction is not to fail of it: %v", err)
				return
			}
			require.NoError(t, err)
			asked := len(client.Actions())
			require.NoError(t, confirm(t.Context(), false))
			assert.Len(t, client.Actions(), asked, "it was asked a moment ago")
		})
	}
}

func TestWhatAnotherProcessReliesOnIsNotRemoved(t *testing.T) {
	known := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: "uid-1", ResourceVersion: "7"}}
	for name, row := range map[string]struct {
		live      *unstructured.Unstructured
		overtaken bool
	}{
		"it is as it was":         {live: stored("uid-1", "7")},
		"it has been written":     {live: stored("uid-1", "8"), overtaken: true},
		"it is gone":              {},
		"another has taken place": {live: stored("uid-2", "8")},
	} {
		t.Run(name, func(t *testing.T) {
			err := staleness{journal: NewJournal(serving(row.live))}.unlessOvertaken(known)(t.Context(), true)
			if row.overtaken {
				assert.True(t, errclass.Is(err, errclass.StaleVersion), "%v", err)
				assert.Equal(t, errclass.Retryable, errclass.ClassOf(err))
				return
			}
			assert.NoError(t, err)
		})
	}
}

// stored is a Transaction as the API server has it.
func stored(uid types.UID, version string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	obj.SetGroupVersionKind(api.Kind)
	obj.SetNamespace("shop")
	obj.SetName("deploy")
	obj.SetUID(uid)
	obj.SetResourceVersion(version)
	return obj
}

// serving returns a client that serves a Transaction, or none. It serves reads alone here.
func serving(live *unstructured.Unstructured) *dynamicfake.FakeDynamicClient {
	var objects []runtime.Object
	if live != nil {
		objects = append(objects, live)
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{api.Resource: "TransactionList"}, objects...)
}

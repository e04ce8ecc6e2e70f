package ui

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/ui"
)

// canned is a Reader of what a test says: what the browser makes of it needs no cluster.
type canned struct {
	transactions []*api.Transaction
	leases       []coordinationv1.Lease
	revisions    []ui.Revision
	changed      [][]api.FieldChange // by item
}

func (c *canned) Transactions(context.Context) ([]*api.Transaction, error) {
	return c.transactions, nil
}

func (c *canned) Follow(context.Context) ([]*api.Transaction, watch.Interface, error) {
	return c.transactions, watch.NewFake(), nil
}

func (c *canned) Transaction(_ context.Context, namespace, name string) (*api.Transaction, error) {
	for _, t := range c.transactions {
		if t.Namespace == namespace && t.Name == name {
			return t, nil
		}
	}
	return nil, apierrors.NewNotFound(api.Resource.GroupResource(), name)
}

func (c *canned) Leases(context.Context, string) ([]coordinationv1.Lease, error) {
	return c.leases, nil
}

func (c *canned) Events(context.Context, *api.Transaction) ([]corev1.Event, error) { return nil, nil }

func (c *canned) Revisions(context.Context, string) ([]ui.Revision, error) { return c.revisions, nil }

func (c *canned) Changes(*api.Transaction) ui.Changes { return c }

func (c *canned) Of(_ context.Context, i int) (fields []api.FieldChange, note string, err error) {
	return c.changed[i], "", nil
}

// showing opens what is canned in a browser.
func showing(t *testing.T, c *canned) (b *browser, address string) {
	t.Helper()
	handler, err := ui.Handler(c, ui.Options{History: c, Past: c})
	require.NoError(t, err)
	server := httptest.NewServer(ui.OnLoopback(ui.Below("secret", handler)))
	t.Cleanup(server.Close)
	return open(t), server.URL + "/secret/"
}

func ago(d time.Duration) *metav1.Time {
	at := metav1.NewTime(time.Now().Add(-d).Truncate(time.Second))
	return &at
}

// large is a Transaction with many items, all but the last of which are made. The last is waited for.
func large(n int, order func(i int) []string) *api.Transaction {
	t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("large-%d", n), UID: types.UID(fmt.Sprint(n)), CreationTimestamp: *ago(90 * time.Second),
	}}
	t.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-janus", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:changes":{}}}`)}}
	t.Spec.ServiceAccountName = "deployer"
	timeout := api.Duration("5m")
	for i := range n {
		kind := []string{"ConfigMap", "Deployment", "Service", "ServiceAccount"}[i%4]
		group := map[string]string{"Deployment": "apps/v1"}[kind]
		if group == "" {
			group = "v1"
		}
		c := api.Change{Name: fmt.Sprintf("item-%d", i), Type: api.Patch, Target: api.Target{APIVersion: group, Kind: kind, Namespace: "shop", Name: fmt.Sprintf("object-of-the-web-shop-%d", i)}, DependsOn: order(i)}
		item := api.Item{Name: c.Name, Target: c.Target, State: api.ItemCommitted, Prepared: true, Committed: true, LockLease: "shop/janus-lock-" + c.Name}
		if i%50 == 1 { // One after the other.
			since := 80*time.Second - time.Duration(i)*65*time.Second/time.Duration(n)
			item.WaitStartTime, item.ReadyTime = ago(since), ago(since-3*time.Second)
		}
		if i == n-1 {
			c.ReadyWhen = &api.ReadyWhen{Status: api.StatusReady, Timeout: &timeout}
			item.WaitStartTime = ago(12 * time.Second)
		}
		t.Spec.Changes = append(t.Spec.Changes, c)
		t.Status.Items = append(t.Status.Items, item)
	}
	t.Status.Phase, t.Status.StartTime = api.PhaseCommitting, ago(88*time.Second)
	message := "waiting for " + t.Spec.Changes[n-1].Target.String() + ": 1/3 Pods ready"
	t.Status.Conditions = []metav1.Condition{
		{Type: api.ConditionValidated, Status: metav1.ConditionTrue, Reason: "AllValidationsPassed", LastTransitionTime: *ago(84 * time.Second)},
		{Type: api.ConditionLocked, Status: metav1.ConditionTrue, Reason: "LocksHeld", LastTransitionTime: *ago(83 * time.Second)},
		{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: "NotReady", Message: message, LastTransitionTime: *ago(88 * time.Second)},
		{Type: api.ConditionReconciling, Status: metav1.ConditionTrue, Reason: "NotReady", Message: message, LastTransitionTime: *ago(88 * time.Second)},
	}
	return t
}

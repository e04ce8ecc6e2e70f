package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
)

// given is a Reader of what a test says.
type given struct {
	transactions []*api.Transaction
	leases       []coordinationv1.Lease
	events       []corev1.Event
	leasesErr    error
	listErr      error
	changes      *watch.FakeWatcher
}

func (g *given) Transactions(context.Context) ([]*api.Transaction, error) {
	return g.transactions, g.listErr
}

func (g *given) Follow(context.Context) ([]*api.Transaction, watch.Interface, error) {
	return g.transactions, g.changes, g.listErr
}

func (g *given) Transaction(_ context.Context, namespace, name string) (*api.Transaction, error) {
	for _, t := range g.transactions {
		if t.Namespace == namespace && t.Name == name {
			return t, nil
		}
	}
	return nil, apierrors.NewNotFound(api.Resource.GroupResource(), name)
}

func (g *given) Leases(context.Context, string) ([]coordinationv1.Lease, error) {
	return g.leases, g.leasesErr
}

func (g *given) Events(context.Context, *api.Transaction) ([]corev1.Event, error) {
	return g.events, nil
}

var noon = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

func transaction(name string, phase api.Phase) *api.Transaction {
	return &api.Transaction{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: noon},
		Status:     api.TransactionStatus{Phase: phase},
	}
}

func serve(t *testing.T, g *given) http.Handler {
	t.Helper()
	h, err := Handler(g, Options{})
	require.NoError(t, err)
	return h
}

func get(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestTheListIsFiltered(t *testing.T) {
	other := transaction("c", api.PhaseFailed)
	other.Namespace = "else"
	h := serve(t, &given{transactions: []*api.Transaction{transaction("a", ""), transaction("b", api.PhaseFailed), other}})
	for query, want := range map[string][]string{
		"":                             {"a", "b", "c"},
		"?namespace=shop":              {"a", "b"},
		"?phase=Failed":                {"b", "c"},
		"?phase=Pending":               {"a"},
		"?namespace=shop&phase=Failed": {"b"},
		"?namespace=none&phase=Failed": {},
	} {
		var found []Summary
		require.NoError(t, json.Unmarshal(get(h, "GET", "/api/transactions"+query).Body.Bytes(), &found), query)
		names := []string{}
		for _, s := range found {
			names = append(names, s.Name)
		}
		assert.Equal(t, want, names, query)
	}
}

// full is a Transaction of which there is much to say, with markup and values that nobody may see.
func full() *api.Transaction {
	t := transaction("full", api.PhaseCommitting)
	t.Spec.ServiceAccountName = "deployer"
	content := &runtime.RawExtension{Raw: []byte(`{"data":{"password":"aHVudGVyMg=="},"metadata":{"labels":{}}}`)}
	t.Spec.Changes = []api.Change{
		{Type: api.Patch, Name: "key", Target: api.Target{Kind: "Secret", Name: "key", Namespace: "shop"}, Content: content},
		{Type: api.Create, Name: "map", Target: api.Target{Kind: "ConfigMap", Name: "map"}, Content: content, DependsOn: []string{"key"}},
	}
	t.Status.StartTime = ptr.To(noon)
	t.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "LockHeld", Message: "<img src=x onerror=alert(1)>", LastTransitionTime: noon}}
	t.Status.Items = []api.Item{
		{
			Name: "key", Target: t.Spec.Changes[0].Target, State: api.ItemCommitting, LockLease: "shop/janus-lock-1",
			Conflicts: []api.FieldConflict{{Field: ".data.password", Now: "hunter2", Managers: []string{"them"}}},
			Plan:      &api.Plan{Effect: api.EffectChange, Fields: []api.FieldChange{{Field: ".data.password", Before: "hunter2", After: "hunter3"}}, More: 2},
			Taken:     []api.OwnedFields{{Manager: "helm", Fields: []string{".data"}, More: 1}},
		},
		{
			Name: "map", Target: t.Spec.Changes[1].Target, State: api.ItemPending, LockLease: "shop/janus-lock-2", DependsOn: []string{"key", "config"},
			Plan: &api.Plan{Effect: api.EffectChange, Fields: []api.FieldChange{{Field: ".data.size", Before: "1", After: "2"}}},
		},
	}
	return t
}

func TestContentFromASecretIsNamedAndNotShown(t *testing.T) {
	txn := transaction("from", api.PhasePlanned)
	txn.Spec.Changes = []api.Change{{
		Type: api.Patch, Target: api.Target{Kind: "ConfigMap", Name: "map"},
		ContentFrom: &api.ContentSource{SecretKeyRef: &api.ContentKey{Name: "source", Key: "map.yaml"}},
	}}
	txn.Status.Items = []api.Item{{
		Name: "0", Target: txn.Spec.Changes[0].Target, Confidential: true,
		Plan: &api.Plan{Effect: api.EffectChange, Fields: []api.FieldChange{{Field: ".data.a", Before: "1", After: "hunter2"}}},
	}}
	answer := get(serve(t, &given{transactions: []*api.Transaction{txn}}), "GET", "/api/transactions/shop/from")
	require.Equal(t, http.StatusOK, answer.Code)
	assert.NotContains(t, answer.Body.String(), "hunter2")
	var d Detail
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &d))
	assert.Equal(t, []string{"content from key map.yaml of Secret source"}, d.Items[0].Notes)
	assert.Equal(t, []Difference{{Field: ".data.a", Before: masked, After: masked}}, d.Items[0].Plan)
}

func TestOneTransactionIsShownWithoutItsContent(t *testing.T) {
	waits := transaction("waits", api.PhasePreparing)
	waits.Status.Items = []api.Item{{Name: "0", Target: full().Spec.Changes[0].Target}}
	waits.Status.Conditions = []metav1.Condition{{Type: "Ready", Reason: "LockHeld"}}
	waits.OwnerReferences = []metav1.OwnerReference{{Kind: "PackageTransaction", Name: "install"}}
	waits.Status.TimedOut = &api.TimedOut{Object: "Secret shop/key", Attempts: 4}
	g := &given{
		transactions: []*api.Transaction{full(), waits},
		leases: []coordinationv1.Lease{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "janus-lock-1"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("shop/full/uid-full")}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "janus-lock-2"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("alice")}},
		},
		events: []corev1.Event{
			{Reason: "Second", LastTimestamp: metav1.NewTime(noon.Add(time.Minute))},
			{Reason: "First", EventTime: metav1.NewMicroTime(noon.Time)},
		},
	}
	answer := get(serve(t, g), "GET", "/api/transactions/shop/full")
	require.Equal(t, http.StatusOK, answer.Code)
	for _, value := range []string{"hunter", "aHVudGVyMg"} {
		assert.NotContains(t, answer.Body.String(), value)
	}
	assert.NotContains(t, answer.Body.String(), "<img", "markup is escaped in JSON, too")

	var d Detail
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &d))
	assert.Equal(t, "LockHeld", d.Reason)
	assert.False(t, d.Chain)
	assert.Empty(t, d.Owner)
	assert.Empty(t, d.TimedOut)
	require.Len(t, d.Items, 2)
	assert.Equal(t, []string{".data.password", ".metadata.labels"}, d.Items[0].Fields)
	assert.Equal(t, []Difference{{Field: ".data.password", Before: masked, After: masked}}, d.Items[0].Plan)
	assert.Equal(t, []Difference{{Field: ".data.password", After: masked, Who: "them"}}, d.Items[0].Conflicts)
	assert.Equal(t, []string{"taken from helm: .data and 1 more", "2 more fields would change"}, d.Items[0].Notes)
	assert.Equal(t, []Difference{{Field: ".data.size", Before: "1", After: "2"}}, d.Items[1].Plan)
	assert.Equal(t, []string{"key"}, d.Items[1].DependsOn)
	assert.Equal(t, []string{"depends on config"}, d.Items[1].Notes)
	assert.Equal(t, []Lock{
		{Lease: "shop/janus-lock-1", Items: []string{"key"}, Holder: "shop/full", Transaction: true, Ours: true, Waiting: []string{"shop/waits"}},
		{Lease: "shop/janus-lock-2", Items: []string{"map"}, Holder: "alice", Waiting: []string{}},
	}, d.Locks)
	assert.Equal(t, "First", d.Events[0].Reason)
	assert.Equal(t, Moment{Time: "2026-03-01T12:00:00Z", What: "Ready became False"}, d.Timeline[2], "its reason is of now, and not of then")
	assert.Equal(t, Condition{Type: "Ready", Status: "False", Since: "2026-03-01T12:00:00Z", Reason: "LockHeld", Message: "<img src=x onerror=alert(1)>"}, d.Conditions[0])

	require.NoError(t, json.Unmarshal(get(serve(t, g), "GET", "/api/transactions/shop/waits").Body.Bytes(), &d))
	assert.Equal(t, []Lock{{Lease: "shop/janus-lock-1", Items: []string{"0"}, Holder: "shop/full", Transaction: true, Waiting: []string{}}}, d.Locks)
	assert.Equal(t, "PackageTransaction install", d.Owner)
	assert.Regexp(t, "^Secret shop/key, 4 of 20 times in a row until Janus gives up; mend the webhook", d.TimedOut)
}

func TestWhatMayNotBeReadIsSaid(t *testing.T) {
	denied := apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("no"))
	g := &given{transactions: []*api.Transaction{full()}, leasesErr: denied}
	var d Detail
	require.NoError(t, json.Unmarshal(get(serve(t, g), "GET", "/api/transactions/shop/full").Body.Bytes(), &d))
	require.Len(t, d.Unread, 1)
	assert.Contains(t, d.Unread[0], "forbidden")
	assert.Len(t, d.Items, 2)

	g.listErr = denied
	assert.Equal(t, http.StatusForbidden, get(serve(t, g), "GET", "/api/transactions").Code)
	assert.Equal(t, http.StatusForbidden, get(serve(t, g), "GET", "/api/stream").Code)
	g.listErr = errors.New("no route")
	assert.Equal(t, http.StatusBadGateway, get(serve(t, g), "GET", "/api/transactions").Code)
	assert.Equal(t, http.StatusNotFound, get(serve(t, g), "GET", "/api/transactions/shop/none").Code)
	assert.Equal(t, http.StatusNotFound, get(serve(t, g), "GET", "/api/none").Code)
}

func TestNothingButReadingIsAllowed(t *testing.T) {
	h := serve(t, &given{transactions: []*api.Transaction{full()}, changes: watch.NewFake()})
	paths := append(files(t), "/", "/api/transactions", "/api/transactions/shop/full", "/api/stream")
	for _, path := range paths {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "NONSENSE"} {
			answer := get(h, method, path)
			assert.Equal(t, http.StatusMethodNotAllowed, answer.Code, "%s %s", method, path)
			assert.Equal(t, "GET, HEAD", answer.Header().Get("Allow"))
		}
		answer := get(h, "HEAD", path)
		assert.Equal(t, http.StatusOK, answer.Code, path)
		assert.True(t, strings.HasPrefix(answer.Header().Get("Content-Security-Policy"), "default-src 'self';"), path)
	}
}

func TestThePageUsesNothingThatItsPolicyForbids(t *testing.T) {
	h := serve(t, &given{})
	for _, path := range append(files(t), "/") {
		text := strings.ReplaceAll(get(h, "GET", path).Body.String(), `"http://www.w3.org/2000/svg"`, "")
		require.NotEmpty(t, text)
		for _, forbidden := range []string{"http:", "https:", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " onclick", "style=", "<style"} {
			assert.NotContains(t, text, forbidden, path)
		}
	}
}

// files are the paths of what is embedded, but for the page itself.
func files(t *testing.T) (paths []string) {
	t.Helper()
	entries, err := os.ReadDir("page")
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.Name() != "index.html" { // It is at /.
			paths = append(paths, "/"+entry.Name())
		}
	}
	require.Greater(t, len(paths), 5)
	return paths
}

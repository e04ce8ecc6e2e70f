package leftovers_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/wiring/leftovers"
	"janus.io/janus/snapshot"
	"janus.io/janus/test/harness"
)

const patch = "changes:\n- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: app}, content: {data: {a: %s}}}\n"

// Answers of an API server that is wrong.
const (
	noLeases = `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`
	notFound = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"name":"x","kind":"configmaps"},"code":404}`
)

// A wire notes what a Janus asks the API server for, and refuses what it is to refuse.
type wire struct {
	next   http.RoundTripper
	refuse string            // what is asked for at paths that end so
	once   map[string]string // what is answered to the first read at a path that ends so

	mu    sync.Mutex
	asked []string
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.asked = append(w.asked, r.Method+" "+r.URL.Path)
	answer := ""
	for path, text := range w.once {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, path) {
			answer = text
			delete(w.once, path)
		}
	}
	w.mu.Unlock()
	if answer != "" {
		status := http.StatusOK
		if answer == notFound {
			status = http.StatusNotFound
		}
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(strings.NewReader(answer)),
		}, nil
	}
	if w.refuse != "" && strings.HasSuffix(r.URL.Path, w.refuse) {
		r = r.Clone(r.Context())
		r.Header.Set("Impersonate-User", "nobody")
	}
	return w.next.RoundTrip(r)
}

// has counts the requests that have a text in them.
func (w *wire) has(text string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.asked {
		if strings.Contains(each, text) {
			n++
		}
	}
	return n
}

// start starts a Janus, as after the death of another, and returns its wire.
func start(e *harness.Env, w *wire, options ...harness.Option) *wire {
	e.Start(append(options, harness.WithTransport(func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	}))...)
	return w
}

// lateLock and lateImage leave what a process may leave that was late with a Transaction and has died.
func lateLock(t *testing.T, e *harness.Env, txn *api.Transaction) {
	t.Helper()
	_, err := e.Kube.CoordinationV1().Leases(harness.SystemNamespace).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: lockOf(t, txn), Labels: snapshot.Labels(txn.Name),
			Annotations: map[string]string{api.TransactionKey: e.Namespace + "/" + txn.Name},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(api.HolderOf(txn)), LeaseDurationSeconds: ptr.To[int32](300)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func lateImage(t *testing.T, e *harness.Env, txn *api.Transaction) {
	t.Helper()
	owner := []metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: api.Kind.Kind, Name: txn.Name, UID: txn.UID}}
	_, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: txn.Name + "-rollback-2", Labels: snapshot.Labels(txn.Name), OwnerReferences: owner, Finalizers: []string{snapshot.Finalizer},
			Annotations: map[string]string{api.TransactionKey: txn.Name, "janus.io/rollback-batch": "2-2-late"},
		},
		Immutable: ptr.To(true),
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// lockOf is the name of the Lease of the lock of the first target. One in janusd's namespace stands in for it.
func lockOf(t *testing.T, txn *api.Transaction) string {
	t.Helper()
	_, name, ok := strings.Cut(txn.Status.Items[0].LockLease, "/")
	require.True(t, ok, "the Lease is named as namespace/name")
	return name
}

// imageGone reports whether that object is gone, and lockGone whether that lock is.
func imageGone(t *testing.T, e *harness.Env, name string) bool {
	t.Helper()
	_, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Get(t.Context(), name+"-rollback-2", metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func lockGone(t *testing.T, e *harness.Env, txn *api.Transaction) bool {
	t.Helper()
	_, err := e.Kube.CoordinationV1().Leases(harness.SystemNamespace).Get(t.Context(), lockOf(t, txn), metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// ended runs some Transactions to their end, by a Janus that is stopped then. They are not remembered.
func ended(e *harness.Env, names ...string) {
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: "0"}}`)
	j := e.Start()
	for _, name := range names {
		e.Run(name, "revisionHistoryLimit: 0\n"+fmt.Sprintf(patch, name))
	}
	j.Stop()
}

func TestManyThatEndedAMomentAgoAreLookedAtTogether(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	names := []string{"n0", "n1", "n2", "n3", "n4", "n5"}
	ended(e, names...)
	w := start(e, &wire{})
	e.Until("each is looked for", func() bool {
		for _, name := range names {
			if w.has("GET /api/v1/namespaces/"+e.Namespace+"/configmaps/"+name+"-rollback-2") < 2 {
				return false
			}
		}
		return true
	})
	assert.Equal(t, 2, w.has("GET /apis/coordination.k8s.io/v1/leases"), "two lists tell of all locks")
	assert.Zero(t, w.has("/leases/"), "and of none it is asked by itself")
	assert.Zero(t, w.has("GET /apis/backup.janus.io/v1alpha1/namespaces/"+e.Namespace+"/transactions/"))
	assert.Zero(t, w.has("/secrets/"), "none of them can have before-images there")
}

func TestWhatALateProcessHasLeftIsRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wire  *wire
		leave []func(*testing.T, *harness.Env, *api.Transaction)
	}{
		"a-lock":         {&wire{}, []func(*testing.T, *harness.Env, *api.Transaction){lateLock}},
		"a-before-image": {&wire{}, []func(*testing.T, *harness.Env, *api.Transaction){lateImage}},
		"both-where-leases-may-not-be-listed": {
			&wire{refuse: "/v1/leases"}, []func(*testing.T, *harness.Env, *api.Transaction){lateLock, lateImage},
		},
		"a-lock-that-the-first-list-lacks": {
			&wire{once: map[string]string{"/v1/leases": noLeases}}, []func(*testing.T, *harness.Env, *api.Transaction){lateLock},
		},
		"a-before-image-that-the-first-answer-denies": {
			&wire{once: map[string]string{"/configmaps/left-rollback-2": notFound}}, []func(*testing.T, *harness.Env, *api.Transaction){lateImage},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			ended(e, "clean", "left")
			txn := e.Transaction("left")
			for _, leave := range c.leave {
				leave(t, e, txn)
			}
			w := start(e, c.wire)
			e.Until("what is left is removed", func() bool { return imageGone(t, e, "left") && lockGone(t, e, txn) })
			e.NothingLeft("left")
			read := w.has("GET /apis/backup.janus.io/v1alpha1/namespaces/"+e.Namespace+"/transactions/clean") > 0
			assert.Equal(t, w.refuse != "", read, "where it can be told together, the one that has left nothing is not read")
		})
	}
}

func TestWhatALateProcessHasLeftOfADeletedTransactionIsRemoved(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	ended(e, "left")
	txn := e.Transaction("left")
	lateLock(t, e, txn)
	lateImage(t, e, txn)
	policy := harness.FastPolicy
	policy.SettleTime = 15 * time.Second
	start(e, &wire{}, harness.WithPolicy(policy))
	e.Run("other", fmt.Sprintf(patch, "other")) // So the watch has told of both.
	e.Delete("left", metav1.DeletePropagationBackground)
	e.Until("what is left is removed", func() bool { return imageGone(t, e, "left") && lockGone(t, e, txn) })
}

func TestPlainAreThoseWhoseBeforeImagesCanBeLookedForByName(t *testing.T) {
	t.Parallel()
	target := func(apiVersion, kind, name string) leftovers.Item {
		return leftovers.Item{Target: api.Target{APIVersion: apiVersion, Kind: kind, Name: name}}
	}
	a, b := target("v1", "ConfigMap", "a"), target("apps/v1", "Deployment", "a")
	one := []leftovers.Change{{}}
	for name, c := range map[string]struct {
		changes []leftovers.Change
		items   []leftovers.Item
		images  *api.RollbackRef
		plain   bool
	}{
		"two targets":            {[]leftovers.Change{{}, {}}, []leftovers.Item{a, b}, nil, true},
		"named before-images":    {one, []leftovers.Item{a}, &api.RollbackRef{Objects: []string{"ConfigMap/x-rollback"}}, true},
		"one never begun":        {one, nil, nil, false},
		"a change without item":  {[]leftovers.Change{{}, {}}, []leftovers.Item{a}, nil, false},
		"one target twice":       {[]leftovers.Change{{}, {}}, []leftovers.Item{b, target("apps/v1beta1", "Deployment", "a")}, nil, false},
		"a Secret":               {one, []leftovers.Item{target("v1", "Secret", "a")}, nil, false},
		"confidential content":   {one, []leftovers.Item{{Target: a.Target, Confidential: true}}, nil, false},
		"a before-image in one":  {one, []leftovers.Item{a}, &api.RollbackRef{Objects: []string{"Secret/x-rollback"}}, false},
		"a condition":            {[]leftovers.Change{{When: "true"}}, []leftovers.Item{a}, nil, false},
		"an activation":          {[]leftovers.Change{{Activation: &struct{}{}}}, []leftovers.Item{a}, nil, false},
		"prepared in its turn":   {one, []leftovers.Item{{Target: a.Target, DeferredBy: "x"}}, nil, false},
		"deleted with another":   {one, []leftovers.Item{{Target: a.Target, DeletedWith: []string{"x"}}}, nil, false},
		"a version of no format": {one, []leftovers.Item{target("a/b/c", "X", "a")}, nil, false},
	} {
		assert.Equal(t, c.plain, leftovers.IsPlain(c.changes, c.items, c.images, func(gk schema.GroupKind) bool { return gk.Kind == "Secret" }), name)
	}
}

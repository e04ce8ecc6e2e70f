package lockmgr

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/test/testcluster"
)

const ttl = 30 * time.Second

// A world is a namespace with targets, one of Janus's own, a clock, and the
// administrator who looks on.
type world struct {
	t         *testing.T
	namespace string
	own       string
	clock     *clocktesting.FakePassiveClock
	admin     kubernetes.Interface
	// tables is set if the Leases of the targets' namespaces are in tables.
	tables bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t:         t,
		namespace: testcluster.Namespace(t),
		own:       testcluster.Namespace(t),
		clock:     clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	w.admin, _ = w.client()
	w.tables = testcluster.LocksInTables()
	return w
}

// in is the world as a subtest uses it.
func (w *world) in(t *testing.T) *world {
	inner := *w
	inner.t = t
	return &inner
}

// client is a client with a wire of its own.
func (w *world) client() (kubernetes.Interface, *wire) {
	w.t.Helper()
	config := testcluster.Shared(w.t).Config()
	tap := &wire{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		tap.next = next
		return tap
	})
	client, err := kubernetes.NewForConfig(config)
	require.NoError(w.t, err)
	w.t.Cleanup(client.CoordinationV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections)
	return client, tap
}

// process is a Manager as in a process of its own, and its wire.
func (w *world) process(change ...func(*Options)) (*Manager, *wire) {
	w.t.Helper()
	client, tap := w.client()
	opts := Options{Namespace: w.own, Clock: w.clock}
	for _, c := range change {
		c(&opts)
	}
	if w.tables {
		return New(leasetable.New(client.CoordinationV1(), w.own), opts), tap
	}
	return New(client.CoordinationV1(), opts), tap
}

// leases are those of a namespace as the Managers of the world see them.
func (w *world) leases(namespace string) coordinationv1client.LeaseInterface {
	if w.tables {
		return leasetable.New(w.admin.CoordinationV1(), w.own).Leases(namespace)
	}
	return w.admin.CoordinationV1().Leases(namespace)
}

func (w *world) step(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// key is a target in the world's namespace.
func (w *world) key(name string) Key { return deployment(w.namespace, name) }

func deployment(namespace, name string) Key {
	return keyOf("apps", "deployments", "Deployment", namespace, name)
}

func clusterRole(name string) Key {
	return keyOf("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", "", name)
}

func keyOf(group, resource, kind, namespace, name string) Key {
	return Key{ID: objectid.ID{Group: group, Resource: resource, Namespace: namespace, Name: name}, Kind: kind}
}

func (w *world) keys(n int) []Key {
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = w.key(fmt.Sprintf("web-%03d", i))
	}
	return keys
}

func holder(identity string) Holder { return Holder{Identity: identity, TTL: ttl} }

// owner makes an object in the namespace of the targets that may own a Lease. The garbage
// collector deletes what is owned by nothing.
func (w *world) owner(name string) *metav1.OwnerReference {
	w.t.Helper()
	made, err := w.admin.CoreV1().ConfigMaps(w.namespace).Create(w.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return &metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: made.UID}
}

// home and away are the two places of a key.
func (w *world) home(key Key) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.LeaseName()}
}

func (w *world) away(key Key) types.NamespacedName {
	return types.NamespacedName{Namespace: w.own, Name: key.LeaseName()}
}

func (w *world) lease(place types.NamespacedName) *coordinationv1.Lease {
	w.t.Helper()
	lease, err := w.leases(place.Namespace).Get(w.t.Context(), place.Name, metav1.GetOptions{})
	require.NoError(w.t, err)
	return lease
}

func (w *world) heldBy(place types.NamespacedName, identity string) {
	w.t.Helper()
	require.Equal(w.t, identity, holderOf(w.lease(place)))
}

func (w *world) noLease(place types.NamespacedName) {
	w.t.Helper()
	_, err := w.leases(place.Namespace).Get(w.t.Context(), place.Name, metav1.GetOptions{})
	require.Truef(w.t, apierrors.IsNotFound(err), "Lease %s: %v", place, err)
}

func (w *world) noLeases(namespace string) {
	w.t.Helper()
	list, err := w.admin.CoordinationV1().Leases(namespace).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	require.Empty(w.t, list.Items)
}

// write makes a Lease with a spec that another client chose.
func (w *world) write(place types.NamespacedName, spec coordinationv1.LeaseSpec) *coordinationv1.Lease {
	w.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.Name}, Spec: spec}
	lease, err := w.leases(place.Namespace).Create(w.t.Context(), lease, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return lease
}

// change changes a Lease behind everybody's back.
func (w *world) change(place types.NamespacedName, change func(*coordinationv1.Lease)) {
	w.t.Helper()
	lease := w.lease(place)
	change(lease)
	_, err := w.leases(place.Namespace).Update(w.t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func (w *world) touch(place types.NamespacedName) {
	w.t.Helper()
	w.change(place, func(lease *coordinationv1.Lease) {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, "touched", lease.ResourceVersion)
	})
}

func (w *world) remove(place types.NamespacedName) {
	w.t.Helper()
	err := w.leases(place.Namespace).Delete(w.t.Context(), place.Name, metav1.DeleteOptions{})
	require.NoError(w.t, err)
}

func (w *world) createNamespace(name string) {
	w.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := w.admin.CoreV1().Namespaces().Create(w.t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// terminate begins the deletion of a namespace, which no controller ends.
func (w *world) terminate(name string) {
	w.t.Helper()
	require.NoError(w.t, w.admin.CoreV1().Namespaces().Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// destroy does what the namespace controller does, and waits until the API
// server knows: what decides there about creates looks into a cache, and while
// that shows the namespace as it went, it refuses them even if there is
// another of the name.
func (w *world) destroy(name string) {
	w.t.Helper()
	w.terminate(name)
	leases := w.admin.CoordinationV1().Leases(name)
	require.NoError(w.t, leases.DeleteCollection(w.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := w.admin.CoreV1().Namespaces().Finalize(w.t.Context(), namespace, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool {
		probe := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
		_, err := leases.Create(w.t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsNotFound(err)
	}, time.Minute, time.Millisecond, "the API server still knows namespace %s", name)
}

// acquire wants all the locks.
func (w *world) acquire(m *Manager, h Holder, keys ...Key) []Lock {
	w.t.Helper()
	locks, err := m.Acquire(w.t.Context(), h, keys)
	require.NoError(w.t, err)
	require.Len(w.t, locks, len(inOrder(keys)))
	return locks
}

// refused wants the key to be refused.
func (w *world) refused(m *Manager, h Holder, key Key, keys ...Key) HeldError {
	w.t.Helper()
	_, err := m.Acquire(w.t.Context(), h, append([]Key{key}, keys...))
	var held *HeldError
	require.ErrorAs(w.t, err, &held)
	require.Equal(w.t, key, held.Key)
	return *held
}

func (w *world) lost(err error) LostError {
	w.t.Helper()
	var lost *LostError
	require.ErrorAs(w.t, err, &lost)
	return *lost
}

// remembersNothing wants the Manager's memory to be empty.
func (w *world) remembersNothing(m *Manager) {
	w.t.Helper()
	m.memory.mu.Lock()
	defer m.memory.mu.Unlock()
	require.Empty(w.t, m.memory.held)
	require.Empty(w.t, m.memory.seen)
	require.Empty(w.t, m.memory.waits)
}

// A wire counts the requests of a client and can interfere with them.
type wire struct {
	next http.RoundTripper

	mu      sync.Mutex
	counts  map[string]int
	flying  int
	highest int
	rules   []*rule
}

// A rule interferes with the next request that matches.
type rule struct {
	method, path string
	skip         int
	before       func()
	lose         bool
	again        bool
}

var errLost = errors.New("the answer was lost")

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	r := w.begin(req)
	defer w.end()
	if r != nil && r.before != nil {
		r.before()
	}
	resp, err := w.next.RoundTrip(req)
	if err == nil && r != nil && r.lose {
		return nil, errors.Join(errLost, resp.Body.Close())
	}
	return resp, err
}

func (w *wire) begin(req *http.Request) *rule {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts == nil {
		w.counts = map[string]int{}
	}
	verb := req.Method
	if verb == http.MethodGet && strings.HasSuffix(req.URL.Path, "/leases") {
		verb = "LIST"
	}
	w.counts[verb]++
	w.flying++
	w.highest = max(w.highest, w.flying)
	for i, r := range w.rules {
		if r.method != verb || !strings.Contains(req.URL.Path, r.path) {
			continue
		}
		if r.skip > 0 {
			r.skip--
			continue
		}
		if !r.again {
			w.rules = append(w.rules[:i:i], w.rules[i+1:]...)
		}
		return r
	}
	return nil
}

func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flying--
}

// on adds a rule.
func (w *wire) on(r rule) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules, &r)
}

// counted returns the numbers of requests since the last call.
func (w *wire) counted() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := w.counts
	w.counts = map[string]int{}
	if counts == nil {
		counts = map[string]int{}
	}
	return counts
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

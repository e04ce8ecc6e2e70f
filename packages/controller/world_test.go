package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/controller/progress"
	"janus.io/janus/test/apisim"
)

// wire is between a controller and the API server.
type wire struct {
	server http.RoundTripper
	fault  string
	at     int // of which request; -1 for none
	beside func()

	sent []string // the methods
	dead bool
}

var errCut = errors.New("the connection is cut")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.dead {
		return nil, errCut
	}
	w.sent = append(w.sent, r.Method)
	if len(w.sent)-1 != w.at {
		return w.server.RoundTrip(r)
	}
	switch w.fault {
	case crashBefore:
		w.dead = true
		return nil, errCut
	case crashAfter:
		w.dead = true
		return nil, w.lose(r)
	case lostReply:
		return nil, w.lose(r)
	case conflict:
		return refuse(r, http.StatusConflict, "Conflict"), nil
	case failure:
		return refuse(r, http.StatusInternalServerError, "InternalError"), nil
	case falseAbsent:
		return refuse(r, http.StatusNotFound, "NotFound"), nil
	case twice:
		again := r.Clone(r.Context())
		if r.GetBody != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			again.Body = body
		}
		if err := w.lose(again); !errors.Is(err, errCut) {
			return nil, err
		}
	case beside:
		w.beside()
	}
	return w.server.RoundTrip(r)
}

// lose sends a request, and drops the answer.
func (w *wire) lose(r *http.Request) error {
	answer, err := w.server.RoundTrip(r)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return errCut
}

func refuse(r *http.Request, code int, reason string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"a fault of the test"}`, reason, code)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

// ledger counts the Transactions that are made.
type ledger struct {
	server http.RoundTripper
	made   []string
}

func (l *ledger) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.server.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusCreated && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/transactions") {
		data, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(data); err != nil {
			return nil, err
		}
		l.made = append(l.made, u.GetName())
		answer.Body = io.NopCloser(bytes.NewReader(data))
	}
	return answer, err
}

// world is a model of an API server on which PackageTransactions are run.
type world struct {
	t      *testing.T
	ledger *ledger
	admin  dynamic.Interface
	kube   kubernetes.Interface
	clock  *clocktesting.FakeClock
	// ends are the phases in which the Transactions end, in turn; the last for all others.
	ends  []txn.Phase
	ended int
	// told is what all processes have told.
	told telling
}

// definitions are the kinds, which are the same for all worlds.
var definitions = sync.OnceValues(func() ([]*apisim.Definition, error) {
	var out []*apisim.Definition
	for _, path := range []string{"crd/backup.janus.io_transactions.yaml", "packages/objects/pkg.janus.io_packagetransactions.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", filepath.FromSlash(path)))
		if err != nil {
			return nil, err
		}
		d, err := apisim.Define(text)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
})

func newWorld(t *testing.T, names []string, ends ...txn.Phase) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), ends: ends}
	crds, err := definitions()
	require.NoError(t, err)
	w.ledger = &ledger{server: apisim.New(apisim.Options{Now: w.clock.Now, Namespaces: []string{"shop", "janus-system"}, CRDs: crds})}
	w.admin, w.kube = w.clients(w.ledger)
	for _, name := range names {
		p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"change": "Delete", "delete": map[string]any{"source": "xpkg.acme.io/acme/" + name}, "serviceAccountRef": map[string]any{"namespace": "shop", "name": "installer"},
		}}}
		p.SetGroupVersionKind(api.Kind)
		p.SetName(name)
		_, err := w.admin.Resource(api.Resource).Create(t.Context(), p, metav1.CreateOptions{})
		require.NoError(t, err)
		w.clock.Step(time.Second)
	}
	return w
}

func (w *world) clients(by http.RoundTripper) (dynamic.Interface, kubernetes.Interface) {
	w.t.Helper()
	config := &rest.Config{Host: "http://sim", Transport: by, QPS: -1, UserAgent: "janusd"}
	dyn, err := dynamic.NewForConfig(config)
	require.NoError(w.t, err)
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(w.t, err)
	return dyn, kube
}

// process is a janusd.
func (w *world) process(by http.RoundTripper) *Controller {
	w.t.Helper()
	own, kube := w.clients(by)
	c := New(Options{Own: own, Leases: kube.CoordinationV1(), Namespace: "janus-system", Crossplane: "crossplane-system", HistoryLimit: 10, Observer: &w.told, Clock: w.clock, Log: zap.NewNop()})
	c.check = func(_ context.Context, p *api.PackageTransaction) (*txn.Transaction, error) {
		if !progress.Checked(p, nil, c.Policy, c.Clock.Now()) {
			return nil, nil
		}
		return c.compiled(p, change.Change{Type: change.Install, Root: p.Spec.Delete.Source})
	}
	return c
}

// listed is what the watch has told.
func (w *world) listed() cache.Store {
	w.t.Helper()
	list, err := w.admin.Resource(api.Resource).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for i := range list.Items {
		require.NoError(w.t, store.Add(&list.Items[i]))
	}
	return store
}

func (w *world) all() []*api.PackageTransaction {
	w.t.Helper()
	var out []*api.PackageTransaction
	for _, obj := range w.listed().List() {
		p, err := decoded(obj.(*unstructured.Unstructured))
		require.NoError(w.t, err)
		out = append(out, p)
	}
	sortByAge(out)
	return out
}

func (w *world) transactions() []*txn.Transaction {
	w.t.Helper()
	list, err := w.admin.Resource(txn.Resource).Namespace("shop").List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	var out []*txn.Transaction
	for i := range list.Items {
		t := &txn.Transaction{}
		require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, t))
		out = append(out, t)
	}
	return out
}

// janus takes all Transactions one step on: begun, ended, and rolled back if they are deleted.
func (w *world) janus() {
	w.t.Helper()
	running := 0
	for _, t := range w.transactions() {
		if t.Status.Phase.Terminal() {
			continue
		}
		running++
		switch {
		case t.Status.Phase == "":
			w.finalizers(t, append(slices.Clone(t.Finalizers), txn.Finalizer))
			w.phase(t.Name, txn.PhaseCommitting)
		case t.DeletionTimestamp != nil:
			w.phase(t.Name, txn.PhaseRolledBack)
			w.finalizers(t, without(t.Finalizers, txn.Finalizer))
		default:
			w.phase(t.Name, w.ends[min(w.ended, len(w.ends)-1)])
			w.ended++
			if w.ends[min(w.ended, len(w.ends))-1].Terminal() {
				w.finalizers(t, without(t.Finalizers, txn.Finalizer))
			}
		}
	}
	require.LessOrEqual(w.t, running, 1, "two Transactions run at once")
}

func (w *world) finalizers(t *txn.Transaction, finalizers []string) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	require.NoError(w.t, err)
	_, err = w.admin.Resource(txn.Resource).Namespace("shop").Patch(w.t.Context(), t.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
}

func (w *world) phase(name string, phase txn.Phase) {
	w.t.Helper()
	client := w.admin.Resource(txn.Resource).Namespace("shop")
	u, err := client.Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	require.NoError(w.t, unstructured.SetNestedField(u.Object, string(phase), "status", "phase"))
	_, err = client.UpdateStatus(w.t.Context(), u, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// free reports whether nobody has the lock.
func (w *world) free() bool {
	w.t.Helper()
	r, err := lock{leases: w.kube.CoordinationV1().Leases("janus-system")}.read(w.t.Context())
	require.NoError(w.t, err)
	_, _, held := r.holder()
	return !held
}

// settled reports whether nothing is to be done any more.
func (w *world) settled() bool {
	w.t.Helper()
	for _, p := range w.all() {
		if p.Status.CompletionTime == nil || slices.Contains(p.Finalizers, api.Finalizer) {
			return false
		}
	}
	return w.free()
}

// drive runs a process until all is settled, with a fault at one of its requests. It returns the
// methods of the requests that the first process has sent. then is called after each step.
func (w *world) drive(fault string, at int, then func(step int)) []string {
	w.t.Helper()
	first := &wire{server: w.ledger, fault: fault, at: at}
	second := w.process(w.ledger)
	first.beside = func() { _, _ = second.pass(w.t.Context(), w.listed()) }
	c := w.process(first)
	for step := range 300 {
		if first.dead {
			c = second
		}
		after, err := c.pass(w.t.Context(), w.listed())
		if err != nil {
			after = time.Second
		}
		w.clock.Step(after)
		w.janus()
		if then != nil {
			then(step)
		}
		if w.settled() {
			return first.sent
		}
	}
	require.Fail(w.t, "it never ends", "%+v", w.all()[0].Status)
	return nil
}

// nothingLeft wants each attempt to have had one Transaction, and nothing to hold anything.
func (w *world) nothingLeft(wanted int) {
	w.t.Helper()
	assert.Len(w.t, w.ledger.made, wanted, "one Transaction for each attempt: %v", w.ledger.made)
	assert.Len(w.t, slices.Compact(slices.Sorted(slices.Values(w.ledger.made))), wanted, "each has its name")
	assert.True(w.t, w.free(), "the lock is released")
	for _, t := range w.transactions() {
		assert.NotContains(w.t, t.Finalizers, api.OutcomeFinalizer, t.Name)
		require.Len(w.t, t.OwnerReferences, 1)
		assert.Nil(w.t, t.OwnerReferences[0].Controller)
		assert.NotEmpty(w.t, t.Labels[api.LabelTransaction])
		assert.Equal(w.t, txn.DeleteRollback, t.Spec.OnDelete)
	}
}

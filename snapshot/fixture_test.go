package snapshot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/testcluster"
)

// canary is in every record that must not leak.
const canary = "c4n4ry-v4lue"

// wire counts requests and can break them.
type wire struct {
	next http.RoundTripper
	mu   sync.Mutex
	log  []string
	// before answers instead of the server, lost throws an answer away. Both may
	// be nil.
	before func(*http.Request) *http.Response
	lost   func(*http.Request) bool
}

var errReset = errors.New("connection reset by the test")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.log = append(w.log, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	before, lost := w.before, w.lost
	w.mu.Unlock()
	if before != nil {
		if answer := before(r); answer != nil {
			if answer.StatusCode == 0 {
				return nil, errReset
			}
			return answer, nil
		}
	}
	answer, err := w.next.RoundTrip(r)
	if err == nil && lost != nil && lost(r) {
		_ = answer.Body.Close()
		return nil, errReset
	}
	return answer, err
}

// requests returns what was asked since the last call.
func (w *wire) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.log
	w.log = nil
	slices.Sort(out)
	return out
}

func (w *wire) set(before func(*http.Request) *http.Response, lost func(*http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.lost = before, lost
}

// fixture is a namespace with a Transaction and a Store.
type fixture struct {
	t       *testing.T
	client  kubernetes.Interface
	dynamic dynamic.Interface
	wire    *wire
	store   *Store
	owner   Owner
}

func setUp(t *testing.T) *fixture { return setUpNamed(t, "release") }

func setUpNamed(t *testing.T, transaction string) *fixture {
	t.Helper()
	config := testcluster.Shared(t).Config()
	f := &fixture{t: t, client: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config), wire: &wire{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		f.wire.next = next
		return f.wire
	})
	f.store = NewStore(kubernetes.NewForConfigOrDie(config), []schema.GroupKind{{Group: "example.com", Kind: "Credential"}})
	f.awaitCRD()
	f.owner = Owner{Namespace: testcluster.Namespace(t), Name: transaction}
	f.owner.UID = f.createTransaction()
	// What a test leaves behind must not keep its namespace from ending.
	t.Cleanup(f.removeFinalizers)
	return f
}

var crdOnce sync.Once

// awaitCRD waits until the kind that the cluster was started with is served.
func (f *fixture) awaitCRD() {
	f.t.Helper()
	crdOnce.Do(func() {
		f.within(func(ctx context.Context) error {
			_, err := f.dynamic.Resource(v1alpha1.Resource).Namespace("default").List(ctx, metav1.ListOptions{})
			return err
		})
	})
}

func (f *fixture) createTransaction() (uid types.UID) {
	f.t.Helper()
	txn := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Transaction",
		"metadata": map[string]any{"name": f.owner.Name, "finalizers": []any{v1alpha1.Finalizer}},
		"spec": map[string]any{"serviceAccountName": "default", "changes": []any{map[string]any{
			"type": "Delete", "target": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}}}},
	}}
	// The garbage collector and discovery learn of a new kind with a delay.
	f.within(func(ctx context.Context) error {
		created, err := f.transactions().Create(ctx, txn, metav1.CreateOptions{})
		if err == nil {
			uid = created.GetUID()
		}
		return err
	})
	return uid
}

func (f *fixture) transactions() dynamic.ResourceInterface {
	return f.dynamic.Resource(v1alpha1.Resource).Namespace(f.owner.Namespace)
}

// endTransaction deletes the Transaction, its finalizer notwithstanding.
func (f *fixture) endTransaction(policy metav1.DeletionPropagation) {
	f.t.Helper()
	f.deleteTransaction(policy)
	f.releaseTransaction()
}

func (f *fixture) deleteTransaction(policy metav1.DeletionPropagation) {
	f.t.Helper()
	if err := f.transactions().Delete(f.t.Context(), f.owner.Name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		f.t.Fatal(err)
	}
}

// collectAgain deletes in the foreground again if the garbage collector has been
// there already: it had then not heard yet of what the Transaction owns, and does not
// come back by itself.
func (f *fixture) collectAgain(ctx context.Context) {
	f.t.Helper()
	txn, err := f.transactions().Get(ctx, f.owner.Name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	if !slices.Contains(txn.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		policy := metav1.DeletePropagationForeground
		if err := f.transactions().Delete(ctx, f.owner.Name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) releaseTransaction() {
	f.t.Helper()
	f.within(func(ctx context.Context) error {
		txn, err := f.transactions().Get(ctx, f.owner.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && txn.GetUID() != f.owner.UID {
			return nil
		}
		if err != nil {
			return err
		}
		txn.SetFinalizers(slices.DeleteFunc(txn.GetFinalizers(), func(s string) bool { return s == v1alpha1.Finalizer }))
		if _, err = f.transactions().Update(ctx, txn, metav1.UpdateOptions{}); err != nil {
			return err
		}
		return errors.New("the Transaction still exists")
	})
}

func (f *fixture) within(condition func(context.Context) error) {
	f.t.Helper()
	// The garbage collector looks for new kinds every 30 seconds.
	ctx, cancel := context.WithTimeout(f.t.Context(), 90*time.Second)
	defer cancel()
	for {
		err := condition(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			f.t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (f *fixture) removeFinalizers() {
	ctx := context.Background()
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	for _, cm := range f.configMaps(ctx) {
		_, _ = f.client.CoreV1().ConfigMaps(f.owner.Namespace).Patch(ctx, cm.Name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	}
	for _, secret := range f.secrets(ctx) {
		_, _ = f.client.CoreV1().Secrets(f.owner.Namespace).Patch(ctx, secret.Name, "application/merge-patch+json", patch, metav1.PatchOptions{})
	}
	_, _ = f.transactions().Patch(ctx, f.owner.Name, "application/merge-patch+json", patch, metav1.PatchOptions{})
}

// configMaps are those that hold before-images.
func (f *fixture) configMaps(ctx context.Context) []corev1.ConfigMap {
	list, err := f.client.CoreV1().ConfigMaps(f.owner.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool { return cm.Name == "kube-root-ca.crt" })
}

func (f *fixture) secrets(ctx context.Context) []corev1.Secret {
	list, err := f.client.CoreV1().Secrets(f.owner.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return list.Items
}

// stored lists what there is as RollbackRef lists it.
func (f *fixture) stored() []string {
	f.t.Helper()
	out := []string{}
	for _, cm := range f.configMaps(f.t.Context()) {
		out = append(out, "ConfigMap/"+cm.Name)
	}
	for _, secret := range f.secrets(f.t.Context()) {
		out = append(out, "Secret/"+secret.Name)
	}
	slices.Sort(out)
	return out
}

func (f *fixture) wantStored(want ...string) {
	f.t.Helper()
	slices.Sort(want)
	if got := f.stored(); !slices.Equal(got, want) {
		f.t.Errorf("there are %q, want %q", got, want)
	}
}

func (f *fixture) wantRequests(want ...string) {
	f.t.Helper()
	slices.Sort(want)
	if got := f.wire.requests(); !slices.Equal(got, want) {
		f.t.Errorf("requests %q, want %q", got, want)
	}
}

func (f *fixture) save(existing *v1alpha1.RollbackRef, records ...Record) Saved {
	f.t.Helper()
	saved, err := f.store.Save(f.t.Context(), f.owner, existing, f.encoded(records...))
	if err != nil {
		f.t.Fatal(err)
	}
	if len(saved.Images) != len(records) {
		f.t.Fatalf("%d images of %d records", len(saved.Images), len(records))
	}
	return saved
}

func (f *fixture) encoded(records ...Record) []Encoded {
	f.t.Helper()
	out := make([]Encoded, len(records))
	for i, r := range records {
		var err error
		if out[i], err = f.store.Encode(r); err != nil {
			f.t.Fatal(err)
		}
	}
	return out
}

// wantLoad loads every record through one Reader, last first as a rollback does.
func (f *fixture) wantLoad(ref v1alpha1.RollbackRef, images []v1alpha1.BeforeImage, records []Record) {
	f.t.Helper()
	reader := f.store.Open(f.owner, ref)
	for i, image := range slices.Backward(images) {
		got, err := reader.Load(f.t.Context(), image)
		if err != nil {
			f.t.Fatal(err)
		}
		if string(encode(f.t, got)) != string(encode(f.t, records[i])) {
			f.t.Errorf("record %d does not come back", i)
		}
	}
}

// wantFault wants a class and a reason, words of the message and no canary.
func wantFault(t *testing.T, err error, class errclass.Class, reason string, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s %s", class, reason)
	}
	if errclass.ClassOf(err) != class || errclass.ReasonOf(err) != reason {
		t.Errorf("%s %s: %v; want %s %s", errclass.ClassOf(err), errclass.ReasonOf(err), err, class, reason)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not mention %q", err, word)
		}
	}
	if strings.Contains(fmt.Sprintf("%v %+v", err, err), canary) {
		t.Errorf("the error quotes the record: %v", err)
	}
}

func refWith(objects ...string) v1alpha1.RollbackRef {
	return v1alpha1.RollbackRef{Name: "any", Objects: objects}
}

// record is a record of a ConfigMap with n bytes.
func record(item, n int) Record {
	name := fmt.Sprintf("target-%d", item)
	obj := image(configMapKind, map[string]any{"data": map[string]any{"content": canary + strings.Repeat("x", n)}})
	return Record{Item: item, Type: "Update", Target: refTo(configMapKind, "shop", name), Before: obj}
}

// secret is a record of a Secret.
func secretRecord(item, n int) Record {
	r := record(item, n)
	r.Target = refTo(secretKind, "shop", fmt.Sprintf("target-%d", item))
	r.Before = image(secretKind, map[string]any{"data": map[string]any{"password": canary + strings.Repeat("x", n)}})
	return r
}

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/api/v1alpha1"
)

func TestDropTakesTwoRequestsAnObject(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10), record(1, 1_400_000), secretRecord(2, 10))
	f.wire.requests()
	if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil {
		t.Fatal(err)
	}
	f.wantRequests("PATCH release-rollback", "DELETE release-rollback", "PATCH release-rollback", "DELETE release-rollback",
		"PATCH release-rollback-2", "DELETE release-rollback-2", "PATCH release-rollback-3", "DELETE release-rollback-3")
	f.wantStored()
	if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil {
		t.Errorf("dropped again: %v", err)
	}
}

func TestKeepTakesOneRequestAnObjectAndDeletesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	records := []Record{record(0, 10), secretRecord(1, 10)}
	saved := f.save(nil, records...)
	f.wire.requests()
	if err := f.store.Keep(t.Context(), f.owner, saved.Ref); err != nil {
		t.Fatal(err)
	}
	f.wantRequests("PATCH release-rollback", "PATCH release-rollback")
	f.wantLoad(saved.Ref, saved.Images, records)
	if err := f.store.Keep(t.Context(), f.owner, saved.Ref); err != nil {
		t.Errorf("kept again: %v", err)
	}
	f.endTransaction(metav1.DeletePropagationBackground)
	f.within(func(ctx context.Context) error {
		if left := len(f.configMaps(ctx)) + len(f.secrets(ctx)); left > 0 {
			return fmt.Errorf("the Transaction is gone, and there are %d objects", left)
		}
		return nil
	})
}

func TestDropAfterKeepDeletes(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10), secretRecord(1, 10))
	for _, do := range []func(context.Context, Owner, v1alpha1.RollbackRef) error{f.store.Keep, f.store.Drop} {
		if err := do(t.Context(), f.owner, saved.Ref); err != nil {
			t.Fatal(err)
		}
	}
	f.wantStored()
}

// What was remembered has no finalizer any more, unless another client has put it on again.
func TestDropKeptTakesTwoRequestsAnObject(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10), secretRecord(1, 10))
	if err := f.store.Keep(t.Context(), f.owner, saved.Ref); err != nil {
		t.Fatal(err)
	}
	other := f.owner
	other.UID = "other"
	f.wire.requests()
	if err := f.store.DropKept(t.Context(), other, saved.Ref); err != nil {
		t.Fatal(err)
	}
	f.wantRequests("GET release-rollback", "GET release-rollback")
	f.wantStored("ConfigMap/release-rollback", "Secret/release-rollback")
	if err := f.store.DropKept(t.Context(), f.owner, saved.Ref); err != nil {
		t.Fatal(err)
	}
	f.wantRequests("GET release-rollback", "DELETE release-rollback", "GET release-rollback", "DELETE release-rollback")
	f.wantStored()
	if err := f.store.DropKept(t.Context(), f.owner, saved.Ref); err != nil {
		t.Errorf("dropped again: %v", err)
	}

	saved = f.save(nil, record(0, 10))
	f.wire.requests()
	if err := f.store.DropKept(t.Context(), f.owner, saved.Ref); err != nil {
		t.Fatal(err)
	}
	f.wantRequests("GET release-rollback", "PATCH release-rollback", "DELETE release-rollback")
	f.wantStored()
}

// K20: a foreground deletion of the owner collects what it owns although its own
// finalizer still holds.
func TestForegroundDeletionOfTheTransactionLeavesTheImages(t *testing.T) {
	t.Parallel()
	for name, letGo := range map[string]func(*Store) func(context.Context, Owner, v1alpha1.RollbackRef) error{
		"until Drop": func(s *Store) func(context.Context, Owner, v1alpha1.RollbackRef) error { return s.Drop },
		"until Keep": func(s *Store) func(context.Context, Owner, v1alpha1.RollbackRef) error { return s.Keep },
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			records := []Record{record(0, 10), secretRecord(1, 10)}
			saved := f.save(nil, records...)
			f.deleteTransaction(metav1.DeletePropagationForeground)
			f.within(func(ctx context.Context) error {
				if f.configMaps(ctx)[0].DeletionTimestamp == nil || f.secrets(ctx)[0].DeletionTimestamp == nil {
					f.collectAgain(ctx)
					return errors.New("the garbage collector has not come")
				}
				return nil
			})
			f.wantLoad(saved.Ref, saved.Images, records)
			// An attempt that lost its status write finds them as well.
			again := f.save(nil, records...)
			f.wantLoad(again.Ref, again.Images, records)
			if err := letGo(f.store)(t.Context(), f.owner, saved.Ref); err != nil {
				t.Fatal(err)
			}
			f.wantStored()
			f.releaseTransaction()
		})
	}
}

func TestFinalizersOfOthersAreKept(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10))
	configMaps := f.client.CoreV1().ConfigMaps(f.owner.Namespace)
	patch := []byte(`{"metadata":{"finalizers":["example.com/backup","backup.janus.io/before-image"]}}`)
	if _, err := configMaps.Patch(t.Context(), "release-rollback", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	f.wire.requests()
	if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil {
		t.Fatal(err)
	}
	f.wantRequests("PATCH release-rollback", "GET release-rollback", "PATCH release-rollback", "DELETE release-rollback")
	cm, err := configMaps.Get(t.Context(), "release-rollback", metav1.GetOptions{})
	if err != nil || cm.DeletionTimestamp == nil || fmt.Sprint(cm.Finalizers) != "[example.com/backup]" {
		t.Errorf("the object is %+v (%v)", cm, err)
	}
	for range 2 {
		if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil {
			t.Errorf("dropped again: %v", err)
		}
	}
}

// Another client has taken the owner off, or has put the object back from a backup without
// one. Nobody else would ever take our finalizer off.
func TestABeforeImageThatHasLostItsOwnerIsLetGo(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10))
	configMaps := f.client.CoreV1().ConfigMaps(f.owner.Namespace)
	patch := func(owners string) {
		t.Helper()
		body := []byte(`{"metadata":{"finalizers":["backup.janus.io/before-image"],"ownerReferences":` + owners + `}}`)
		if _, err := configMaps.Patch(t.Context(), "release-rollback", "application/merge-patch+json", body, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	finalizers := func() int {
		t.Helper()
		cm, err := configMaps.Get(t.Context(), "release-rollback", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(cm.Finalizers)
	}
	patch("null")
	if err := f.store.Keep(t.Context(), f.owner, saved.Ref); err != nil || finalizers() > 0 {
		t.Errorf("%v, and %d finalizers are left", err, finalizers())
	}
	patch(`[{"apiVersion":"backup.janus.io/v1alpha1","kind":"Transaction","name":"other","uid":"other","controller":true}]`)
	if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil || finalizers() == 0 {
		t.Errorf("%v, and that of another Transaction is let go", err)
	}
	patch("null")
	if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil {
		t.Error(err)
	}
	f.wantStored()
}

func TestDropGoesOnWhereItFailed(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for i := 0; ; i++ {
			f := setUp(t)
			saved := f.save(nil, record(0, 10), secretRecord(1, 10))
			n := 0
			fail := func(*http.Request) bool {
				f.wire.mu.Lock()
				defer f.wire.mu.Unlock()
				n++
				return n == i+1
			}
			if lost {
				f.wire.set(nil, fail)
			} else {
				f.wire.set(func(r *http.Request) *http.Response {
					if fail(r) {
						return &http.Response{}
					}
					return nil
				}, nil)
			}
			err := f.store.Drop(t.Context(), f.owner, saved.Ref)
			f.wire.set(nil, nil)
			if err == nil {
				f.wantStored()
				break
			}
			if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil {
				t.Fatal(err)
			}
			f.wantStored()
		}
	}
}

// What the status does not name nobody looks for again: so it is looked for twice.
func TestSweepWithNothingToDoTakesTwoRequestsForEachKind(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	if err := f.store.Sweep(t.Context(), f.owner, 1); err != nil {
		t.Fatal(err)
	}
	f.wantRequests("GET release-rollback", "GET release-rollback", "GET release-rollback", "GET release-rollback")
	saved := f.save(nil, record(0, 10), secretRecord(1, 10))
	f.wire.requests()
	for range 2 {
		if err := f.store.SweepUnlisted(t.Context(), f.owner, &saved.Ref, false); err != nil {
			t.Fatal(err)
		}
		f.wantRequests("GET release-rollback-2", "GET release-rollback-2")
		if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil {
			t.Fatal(err)
		}
		f.wire.requests()
	}
}

// Once the Transaction has gone, nobody is left to look: one answer is not enough.
func TestSweepOfWhatGoesForGoodBearsAFalseAnswer(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10))
	f.save(&saved.Ref, record(1, 10), secretRecord(2, 10))
	var denied sync.Map
	f.wire.set(func(r *http.Request) *http.Response {
		if _, again := denied.LoadOrStore(r.URL.Path, true); again || r.Method != http.MethodGet {
			return nil
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
	}, nil)
	if err := f.store.SweepUnlisted(t.Context(), f.owner, &saved.Ref, true); err != nil {
		t.Fatal(err)
	}
	f.wire.set(nil, nil)
	f.wantStored("ConfigMap/release-rollback")
}

func TestSweepFindsALateCaptureThatNoStatusNames(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10))
	f.save(&saved.Ref, record(1, 1_400_000), secretRecord(2, 10))
	if err := f.store.SweepUnlisted(t.Context(), f.owner, &saved.Ref, false); err != nil {
		t.Fatal(err)
	}
	f.wantStored("ConfigMap/release-rollback")
}

package snapshot

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

func isPost(r *http.Request) bool { return r.Method == http.MethodPost }

// answer makes a Status of the API server.
func answer(code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewBufferString(body)),
	}
}

func TestForeignObjectIsNotTouched(t *testing.T) {
	t.Parallel()
	strangers := map[string]metav1.ObjectMeta{
		"nobody's": {},
		"another kind's": {OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "release", UID: "someone", Controller: new(bool)}}},
		"another Transaction's": {OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "backup.janus.io/v1alpha1", Kind: "Transaction", Name: "other", UID: "someone", Controller: trueValue()}}},
		"another group's Transaction's": {OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "bank.example.com/v1", Kind: "Transaction", Name: "release", UID: "someone", Controller: trueValue()}}},
	}
	for name, meta := range strangers {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			meta.Name = "release-rollback"
			meta.Finalizers = []string{"example.com/keep"} // against the garbage collector
			cm, err := f.client.CoreV1().ConfigMaps(f.owner.Namespace).Create(t.Context(),
				&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": canary}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.store.Save(t.Context(), f.owner, nil, f.encoded(record(0, 1)))
			wantFault(t, err, errclass.Terminal, errclass.AlreadyExists, "ConfigMap "+f.owner.Namespace+"/release-rollback", "delete or rename it")
			ref := refWith("ConfigMap/release-rollback")
			for name, end := range map[string]func() error{
				"Drop":  func() error { return f.store.Drop(t.Context(), f.owner, ref) },
				"Keep":  func() error { return f.store.Keep(t.Context(), f.owner, ref) },
				"Sweep": func() error { return f.store.Sweep(t.Context(), f.owner, 1) },
			} {
				if err := end(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			after, err := f.client.CoreV1().ConfigMaps(f.owner.Namespace).Get(t.Context(), cm.Name, metav1.GetOptions{})
			if err != nil || after.UID != cm.UID || after.Data["a"] != canary || len(after.Finalizers) != 1 {
				t.Errorf("the object is now %+v (%v)", after, err)
			}
		})
	}
}

func trueValue() *bool { v := true; return &v }

func TestWhatAnEarlierAttemptSavedIsTakenOver(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	records := []Record{record(0, 10), record(1, 1_400_000), secretRecord(2, 10)}
	first := f.save(nil, records...)
	before := f.configMaps(t.Context())
	second := f.save(nil, records...)
	if strings.Join(first.Ref.Objects, " ") != strings.Join(second.Ref.Objects, " ") {
		t.Errorf("first %q, then %q", first.Ref.Objects, second.Ref.Objects)
	}
	for i, cm := range f.configMaps(t.Context()) {
		if cm.UID != before[i].UID || cm.ResourceVersion != before[i].ResourceVersion {
			t.Errorf("%s was written again", cm.Name)
		}
	}
	f.wantLoad(second.Ref, second.Images, records)
}

// A second controller may be about to write the status that names it.
func TestWhatAnotherAttemptSavedDifferentlyIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	theirs := []Record{record(0, 10), record(1, 1_400_000), secretRecord(2, 10)}
	first := f.save(nil, theirs...)
	ours := []Record{record(0, 11), record(1, 1_400_000), secretRecord(2, 10)}
	second := f.save(nil, ours...)
	want := []string{"ConfigMap/release-rollback-4", "ConfigMap/release-rollback-5", "ConfigMap/release-rollback-6", "Secret/release-rollback"}
	if strings.Join(second.Ref.Objects, " ") != strings.Join(want, " ") {
		t.Errorf("objects %q, want %q", second.Ref.Objects, want)
	}
	f.wantLoad(first.Ref, first.Images, theirs)
	f.wantLoad(second.Ref, second.Images, ours)

	// In the end, what the status does not name goes.
	if err := f.store.SweepUnlisted(t.Context(), f.owner, &second.Ref, false); err != nil {
		t.Fatal(err)
	}
	f.wantStored(want...)
	f.wantLoad(second.Ref, second.Images, ours)
}

func TestLeftoverWithoutItsFinalizerIsNotTakenOver(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first := f.save(nil, record(0, 10))
	if err := f.store.Keep(t.Context(), f.owner, first.Ref); err != nil {
		t.Fatal(err)
	}
	second := f.save(nil, record(0, 10))
	if second.Ref.Objects[0] != "ConfigMap/release-rollback-2" {
		t.Errorf("objects %q", second.Ref.Objects)
	}
}

func TestPredecessorsLeftoversAreReplaced(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	// Whether or not the garbage collector has come by, the finalizer holds them.
	predecessor := f.owner
	predecessor.UID = "11111111-2222-4333-8444-555555555555"
	first, err := f.store.Save(t.Context(), predecessor, nil, f.encoded(record(0, 10), record(1, 2_500_000), secretRecord(2, 10)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Save(t.Context(), predecessor, &first.Ref, f.encoded(record(3, 10))); err != nil {
		t.Fatal(err)
	}
	records := []Record{record(0, 20), secretRecord(1, 20)}
	saved := f.save(nil, records...)
	f.wantStored("ConfigMap/release-rollback", "Secret/release-rollback")
	f.wantLoad(saved.Ref, saved.Images, records)
}

func TestPredecessorsLeftoverBehindTheFirstIsReplaced(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	predecessor := f.owner
	predecessor.UID = "11111111-2222-4333-8444-555555555555"
	left, err := f.store.Save(t.Context(), predecessor, nil, f.encoded(record(0, 2_500_000)))
	if err != nil {
		t.Fatal(err)
	}
	// It has ended half-way, and its finalizer holds the others.
	if err := f.store.Drop(t.Context(), predecessor, refWith(left.Ref.Objects[0])); err != nil {
		t.Fatal(err)
	}
	f.store = NewStore(f.client, nil) // of another process
	records := []Record{record(0, 2_500_001)}
	saved := f.save(nil, records...)
	f.wantLoad(saved.Ref, saved.Images, records)
}

func TestControllerOfAReplacedTransactionTouchesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	asleep := f.owner
	f.endTransaction(metav1.DeletePropagationBackground)
	f.owner.UID = f.createTransaction()
	saved := f.save(nil, record(0, 10))
	_, err := f.store.Save(t.Context(), asleep, nil, f.encoded(record(0, 20)))
	wantFault(t, err, errclass.Retryable, errclass.StaleVersion, "deleted and created again")
	if err := f.store.Drop(t.Context(), asleep, saved.Ref); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Sweep(t.Context(), asleep, 1); err != nil {
		t.Fatal(err)
	}
	f.wantLoad(saved.Ref, saved.Images, []Record{record(0, 10)})
}

func TestLostAnswerToACreateIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Record{"ConfigMap": record(0, 10), "Secret": secretRecord(0, 10)} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			f.wire.set(nil, isPost)
			saved := f.save(nil, r)
			f.wire.set(nil, nil)
			f.wantRequests("POST "+strings.ToLower(name)+"s", "GET release-rollback")
			f.wantLoad(saved.Ref, saved.Images, []Record{r})
		})
	}
}

func TestCreateThatDidNotArriveIsOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.wire.set(func(r *http.Request) *http.Response {
		if isPost(r) {
			return &http.Response{}
		}
		return nil
	}, nil)
	_, err := f.store.Save(t.Context(), f.owner, nil, f.encoded(record(0, 10)))
	wantFault(t, err, errclass.Unknown, errclass.ServerUnavailable, "ConfigMap "+f.owner.Namespace+"/release-rollback")
	f.wire.set(nil, nil)
	f.save(nil, record(0, 10))
}

func TestCreateWithoutAnyAnswerIsOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.wire.set(nil, func(*http.Request) bool { return true })
	_, err := f.store.Save(t.Context(), f.owner, nil, f.encoded(record(0, 10)))
	wantFault(t, err, errclass.Unknown, errclass.ServerUnavailable)
	f.wire.set(nil, nil)
	f.save(nil, record(0, 10))
	f.wantStored("ConfigMap/release-rollback")
}

func TestServerThatQuotesTheRecordIsNotQuoted(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusUnprocessableEntity, http.StatusForbidden, http.StatusInternalServerError, http.StatusTooManyRequests} {
		f := setUp(t)
		f.wire.set(func(r *http.Request) *http.Response {
			if !isPost(r) {
				return nil
			}
			return answer(code, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"denied: `+canary+`","code":`+strconv.Itoa(code)+`,
				"reason":"Whatever","details":{"causes":[{"field":"data[a=`+canary+`]","message":"`+canary+`","reason":"FieldValueInvalid"}]}}`)
		}, nil)
		for _, r := range []Record{record(0, 1), secretRecord(0, 1)} {
			_, err := f.store.Save(t.Context(), f.owner, nil, f.encoded(r))
			want, reason := errclass.Classify(err)
			wantFault(t, err, want, reason, "release-rollback")
		}
	}
}

// Fail the i-th request, for every i, and repeat the call: nothing is lost, and in
// the end nothing is left.
func TestCrashAtAnyRequestLeavesNothingThatASweepMisses(t *testing.T) {
	t.Parallel()
	records := []Record{record(0, 10), record(1, 2_500_000), secretRecord(2, 1_400_000)}
	for _, lost := range []bool{false, true} {
		for i := 0; ; i++ {
			f := setUp(t)
			n := 0
			fail := func(*http.Request) bool {
				f.wire.mu.Lock()
				defer f.wire.mu.Unlock()
				n++
				return n > i // this one and all that follow: the process is dead
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
			_, err := f.store.Save(t.Context(), f.owner, nil, f.encoded(records...))
			f.wire.set(nil, nil)
			if err == nil {
				break
			}
			if errclass.ClassOf(err) != errclass.Unknown {
				t.Errorf("request %d: %v", i, err)
			}
			if i%2 == 0 { // either another attempt first, or none
				again := []Record{record(0, 11), records[1], records[2]}
				saved := f.save(nil, again...)
				f.wantLoad(saved.Ref, saved.Images, again)
			}
			if err := f.store.Sweep(t.Context(), f.owner, 1); err != nil {
				t.Fatal(err)
			}
			f.wantStored()
		}
	}
}

func TestRefOfAnotherTransactionNamesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := f.store.Load(t.Context(), f.owner, refWith("Secret/passwords"), v1alpha1.BeforeImage{Key: "a", Digest: "b"})
	wantFault(t, err, errclass.Terminal, errclass.BeforeImageLost)
	f.wantRequests()
}

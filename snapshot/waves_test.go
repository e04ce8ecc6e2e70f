package snapshot

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/testcluster"
)

// waves are records that are saved by three calls. Each of them takes several objects.
func waves() [][]Record {
	return [][]Record{
		{record(0, 10), record(1, 1_400_000), secretRecord(2, 10)},
		{record(3, 1_400_000), secretRecord(4, 1_400_000)},
		{record(5, 10), secretRecord(6, 10)},
	}
}

// saveWaves saves them one after the other, each with what the others have returned.
func (f *fixture) saveWaves(store *Store, waves [][]Record) (all Saved, err error) {
	f.t.Helper()
	var ref *v1alpha1.RollbackRef
	for _, records := range waves {
		saved, err := store.Save(f.t.Context(), f.owner, ref, f.encoded(records...))
		all.Lost = all.Lost || saved.Lost
		if err != nil {
			return all, err
		}
		ref = &saved.Ref
		all.Ref, all.Images = saved.Ref, append(all.Images, saved.Images...)
	}
	return all, nil
}

func (f *fixture) mustSaveWaves(store *Store, waves [][]Record) Saved {
	f.t.Helper()
	saved, err := f.saveWaves(store, waves)
	if err != nil {
		f.t.Fatal(err)
	}
	return saved
}

// anotherProcess is a Store that knows nothing of what the fixture's has done.
func (f *fixture) anotherProcess() *Store {
	return NewStore(kubernetes.NewForConfigOrDie(testcluster.Shared(f.t).Config()), nil)
}

func TestWavesAreLoadedAsOne(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.mustSaveWaves(f.store, waves())
	f.wantStored(saved.Ref.Objects...)
	f.wantLoad(saved.Ref, saved.Images, slices.Concat(waves()...))
	if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil {
		t.Fatal(err)
	}
	f.wantStored()
}

// What a crash leaves between two waves, or within one, is taken over by an attempt that meets
// the same objects, and stepped over by one that doesn't. In the end nothing is left.
func TestACrashInAnyWaveLeavesNothingThatASweepMisses(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for i := 0; ; i++ {
			f := setUp(t)
			var mu sync.Mutex
			n := 0
			fail := func(*http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
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
			_, err := f.saveWaves(f.store, waves())
			f.wire.set(nil, nil)
			if err == nil {
				break
			}
			if errclass.ClassOf(err) != errclass.Unknown {
				t.Errorf("request %d: %v", i, err)
			}
			other := f.anotherProcess()
			switch i % 3 {
			case 0:
				before := f.stored()
				saved := f.mustSaveWaves(other, waves())
				for _, object := range before {
					if !slices.Contains(saved.Ref.Objects, object) {
						t.Errorf("request %d: %s was not taken over", i, object)
					}
				}
				f.wantLoad(saved.Ref, saved.Images, slices.Concat(waves()...))
			case 1:
				changed := waves()
				changed[0][0] = record(0, 11)
				saved := f.mustSaveWaves(other, changed)
				f.wantLoad(saved.Ref, saved.Images, slices.Concat(changed...))
				if err := other.SweepUnlisted(t.Context(), f.owner, &saved.Ref, false); err != nil {
					t.Fatal(err)
				}
				f.wantStored(saved.Ref.Objects...)
			}
			if err := other.Sweep(t.Context(), f.owner, 1); err != nil {
				t.Fatal(err)
			}
			f.wantStored()
		}
	}
}

// Two controllers save the same Transaction, one of them late, and wave by wave in turns.
func TestTheWavesOfTwoControllersDoNotMix(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	theirs := waves()
	theirs[1][0] = record(3, 1_300_000) // Between the two looks it was changed.
	late := f.anotherProcess()
	var mine, other *v1alpha1.RollbackRef
	var images []v1alpha1.BeforeImage
	for n := range waves() {
		saved, err := f.store.Save(t.Context(), f.owner, mine, f.encoded(waves()[n]...))
		if err != nil {
			t.Fatal(err)
		}
		mine, images = &saved.Ref, append(images, saved.Images...)
		again, err := late.Save(t.Context(), f.owner, other, f.encoded(theirs[n]...))
		if err != nil {
			t.Fatal(err)
		}
		other = &again.Ref
	}
	for object, shared := range map[string]bool{"ConfigMap/release-rollback": true, "ConfigMap/release-rollback-4": false, "ConfigMap/release-rollback-8": true} {
		if !slices.Contains(mine.Objects, object) || slices.Contains(other.Objects, object) != shared {
			t.Errorf("one has %q, the other %q: they are to share the waves that are equal", mine.Objects, other.Objects)
		}
	}
	if err := f.store.SweepUnlisted(t.Context(), f.owner, mine, false); err != nil {
		t.Fatal(err)
	}
	f.wantStored(mine.Objects...)
	f.wantLoad(*mine, images, slices.Concat(waves()...))
}

// late holds the request that creates an object back: anyone who sends it hears nothing, and it
// arrives when arrive is called.
func (f *fixture) late(name string) (arrive func()) {
	var mu sync.Mutex // Requests are sent side by side.
	var held *http.Request
	f.wire.set(func(r *http.Request) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		if !isPost(r) || held != nil {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			f.t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !strings.Contains(string(body), `"name":"`+name+`"`) {
			return nil
		}
		held = r.Clone(f.t.Context())
		held.Body = io.NopCloser(bytes.NewReader(body))
		return &http.Response{}
	}, nil)
	return func() {
		f.t.Helper()
		f.wire.set(nil, nil)
		mu.Lock()
		defer mu.Unlock()
		if held == nil {
			f.t.Fatalf("nothing was sent to create %s", name)
		}
		answer, err := f.wire.next.RoundTrip(held)
		if err != nil {
			f.t.Fatal(err)
		}
		_ = answer.Body.Close()
		f.wantStored("ConfigMap/" + name)
	}
}

// A request that was given up on lands when all that led to its object has been removed. Who
// sent it, or has seen how far the objects reach, looks there again.
func TestWhatLandsAfterASweepIsFoundByTheNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		object  string
		another bool // It is another process that sweeps: the first has died.
	}{
		"the first of a wave, the same process":      {object: "release-rollback-4"},
		"another of a wave, the same process":        {object: "release-rollback-5"},
		"the first of a wave, another process":       {object: "release-rollback-4", another: true},
		"another of a wave, another process":         {object: "release-rollback-5", another: true},
		"another of the first wave, another process": {object: "release-rollback-3", another: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			arrive := f.late(c.object)
			saved, err := f.saveWaves(f.store, waves())
			wantFault(t, err, errclass.Unknown, errclass.ServerUnavailable, c.object)
			if !saved.Lost {
				t.Error("it does not say that the request may land")
			}
			sweeps := f.store
			if c.another {
				sweeps = f.anotherProcess()
			}
			sweep := func() {
				t.Helper()
				if err := sweeps.Sweep(t.Context(), f.owner, 2); err != nil {
					t.Fatal(err)
				}
				f.wantStored()
			}
			sweep()
			arrive()
			sweep()
		})
	}
}

// The objects of a large Transaction are read one after the other, and not all are kept.
func TestAReaderKeepsNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var records []Record
	for i := range 12 {
		records = append(records, record(i, 900_000))
	}
	saved := f.save(nil, records...)
	f.wire.requests()
	reader := f.store.Open(f.owner, saved.Ref)
	for _, round := range []string{"forward", "again"} {
		for i, image := range saved.Images {
			for range 2 {
				if _, err := reader.Load(t.Context(), image); err != nil {
					t.Fatal(err)
				}
			}
			if reader.size > keptBytes {
				t.Fatalf("%s, record %d: it keeps %d bytes", round, i, reader.size)
			}
		}
		if got := f.wire.requests(); len(got) != len(records) {
			t.Errorf("%s: %d requests for %d objects: %q", round, len(got), len(records), got)
		}
	}
}

package lockmgr

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"janus.io/janus/internal/sharedlease"
)

// A breakdown breaks the n-th write of Leases: it does not reach the API server, or its answer is
// lost, or it lands when something else has been tried. The processes may die of it.
type breakdown struct {
	next http.RoundTripper
	kind string

	mu   sync.Mutex
	left int
	hit  bool
}

func (b *breakdown) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return b.next.RoundTrip(req)
	}
	b.mu.Lock()
	b.left--
	now := b.left == 0
	b.hit = b.hit || now
	b.mu.Unlock()
	if !now {
		return b.next.RoundTrip(req)
	}
	if b.kind == "answer-lost" {
		if resp, err := b.next.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	return nil, errLost
}

// TestSharedLocksSurviveAnyBrokenWrite breaks each write of a story of two readers and a writer,
// in each way, with the processes alive and replaced, until a run has no such write.
func TestSharedLocksSurviveAnyBrokenWrite(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"not-sent", "answer-lost"} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/dies=%v", kind, dies), func(t *testing.T) {
				t.Parallel()
				n := 1
				for w := newWorld(t); w.brokenStory(kind, n, dies); n++ {
				}
				require.Greater(t, n, 9, "the story has more writes than that")
			})
		}
	}
}

// brokenStory tells the story with one write broken, and reports whether it was.
func (w *world) brokenStory(kind string, n int, dies bool) bool {
	b := &breakdown{kind: kind, left: n}
	lost := 0
	process := func() *Manager {
		m, tap := w.process()
		if b.next == nil {
			b.next = tap.next
		}
		tap.next = b
		return m
	}
	m := process()
	key := w.key(fmt.Sprintf("web-%d", n))
	who := func(identity string) Holder {
		h := waiting(identity)
		h.Lost = func() { lost++ }
		return h
	}
	// try repeats what may be repeated after any outcome.
	try := func(act func() error) error {
		before, doubts := b.hit, lost
		err := act()
		if b.hit == before {
			return err
		}
		if dies {
			m = process()
		}
		for range 2 {
			if again := act(); again == nil || isHeld(again) {
				return again
			}
		}
		require.Greater(w.t, lost, doubts, "%v", err)
		return act()
	}
	acquire := func(identity string, key Key) error {
		return try(func() error { _, err := m.Acquire(w.t.Context(), who(identity), []Key{key}); return err })
	}
	release := func(identity string, key Key) error {
		return try(func() error { return m.Release(w.t.Context(), who(identity), []Key{key}) })
	}
	at := lockAt(key, w.home(key))
	require.NoError(w.t, acquire("a", shared(key)))
	require.NoError(w.t, acquire("b", shared(key)))
	w.sharedBy(at, "", "a", "b")
	require.True(w.t, isHeld(acquire("c", key)))
	require.True(w.t, isHeld(acquire("c", key)))
	w.sharedBy(at, "c", "a", "b")
	require.True(w.t, isHeld(acquire("d", shared(key))))
	w.step(ttl / 2)
	for _, identity := range []string{"a", "b"} {
		lock := []Lock{lockAt(shared(key), w.home(key))}
		require.NoError(w.t, try(func() error { return m.Keep(w.t.Context(), who(identity), lock) }))
	}
	require.NoError(w.t, release("a", shared(key)))
	w.sharedBy(at, "c", "b")
	require.NoError(w.t, release("b", shared(key)))
	w.sharedBy(at, "c")
	require.NoError(w.t, acquire("c", key))
	w.heldBy(w.home(key), "c")
	require.True(w.t, isHeld(acquire("d", shared(key))))
	require.NoError(w.t, release("c", key))
	require.NoError(w.t, acquire("d", shared(key)))
	require.NoError(w.t, release("d", shared(key)))
	w.noLease(w.home(key))
	return b.hit
}

// The write by which a reader joins, or a writer says that it waits, lands when they have given up.
// They were told that it may, look once more, and find it.
func TestAWriteOfASharedLeaseThatLandsLateIsDoubted(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"reader": false, "writer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m, tap := w.process()
			other, _ := w.process()
			key := w.key("web")
			wanted := shared(key)
			if alone {
				wanted = key
			}
			locks := w.acquire(other, holder("a"), shared(key))
			lost := 0
			late := &postponed{next: tap.next, told: func() { lost = 0 }}
			tap.next = late
			h := waiting("b")
			h.Lost = func() { lost++ }
			_, err := m.Acquire(t.Context(), h, []Key{wanted})
			require.Error(t, err)
			require.Equal(t, 1, lost)
			w.release(m, "b", wanted)
			w.sharedBy(locks[0], "", "a")

			require.NoError(t, late.land())
			if alone {
				w.sharedBy(locks[0], "b", "a")
			} else {
				w.sharedBy(locks[0], "", "a", "b")
			}
			w.release(m, "b", wanted)
			w.sharedBy(locks[0], "", "a")
		})
	}
}

// postponed keeps the first PUT from the API server until it is told to let it land.
type postponed struct {
	next http.RoundTripper
	kept *http.Request
	told func()
}

func (p *postponed) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPut || p.kept != nil {
		return p.next.RoundTrip(req)
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	p.told()
	p.kept = req.Clone(req.Context())
	p.kept.Body = body
	return nil, errLost
}

func (p *postponed) land() error {
	resp, err := p.next.RoundTrip(p.kept)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it was answered %s", resp.Status)
	}
	return resp.Body.Close()
}

// Many join at once, and leave at once. Each write shuts the others out, and all come to it.
func TestManyReadersJoinAndLeaveAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := shared(w.key("web"))
	const n = 40
	var all sync.WaitGroup
	attempts := make(chan int, 2*n)
	each := func(act func(m *Manager, h Holder) error) {
		for i := range n {
			all.Go(func() {
				m, _ := w.process()
				tries := 1
				for act(m, waiting(fmt.Sprintf("reader-%02d", i))) != nil {
					tries++
				}
				attempts <- tries
			})
		}
		all.Wait()
	}
	each(func(m *Manager, h Holder) error { _, err := m.Acquire(t.Context(), h, []Key{key}); return err })
	require.Len(t, sharedlease.By(w.lease(w.home(key))), n)
	each(func(m *Manager, h Holder) error { return m.Release(t.Context(), h, []Key{key}) })
	w.noLease(w.home(key))
	close(attempts)
	most := 0
	for tries := range attempts {
		most = max(most, tries)
	}
	t.Logf("%d readers; the slowest needed %d attempts", n, most)
}

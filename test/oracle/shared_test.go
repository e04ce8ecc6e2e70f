package oracle

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/faultinject"
)

const (
	otherUID = "cccccccc-0000-4000-8000-000000000009"
	thirdUID = "dddddddd-0000-4000-8000-000000000010"
)

// readersOf says that Transactions share a lock, each since its time, and who is next.
type readersOf struct {
	uids  []string
	next  string
	since map[string]time.Duration
}

// share writes a Lease that readers share.
func (w *world) share(target Ref, s readersOf) {
	entry := func(uid string) tree {
		renewed := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(s.since[uid]).Format(time.RFC3339Nano)
		return tree{"holder": ns + "/txn/" + uid, "seconds": 300, "renewed": renewed, "over": renewed}
	}
	readers := []tree{}
	for _, uid := range s.uids {
		readers = append(readers, entry(uid))
	}
	list, _ := json.Marshal(readers)
	annotations := tree{"janus.io/shared-by": string(list)}
	if s.next != "" {
		text, _ := json.Marshal(entry(s.next))
		annotations["janus.io/wanted-by"] = string(text)
	}
	method := "PUT"
	if w.live[lockOf(target)] == nil {
		method = "POST"
	}
	w.send(method, lockOf(target), faultinject.Call{}, "Lease", func(o tree) {
		o["metadata"].(tree)["annotations"] = annotations
		o["spec"] = tree{"holderIdentity": "janus.io/shared", "leaseDurationSeconds": int64(300), "leaseTransitions": int64(0), "renewTime": "2026-01-01T00:00:00Z"}
	})
}

var guard = Ref{"configmaps", ns, "guard"}

func TestBrokenSharedLocksAreFound(t *testing.T) {
	gone := func(w *world) { w.remove(lockOf(guard), "") }
	both := readersOf{uids: []string{txnUID, otherUID}}
	for _, c := range []wrong{
		{"a writer that takes a lock from readers", LockExclusion, "was held until 2026-01-01T00:05:00Z",
			commit(hooks{"handover": func(w *world) { w.share(guard, both); w.lock(guard, thirdUID, time.Minute); gone(w) }})},
		{"a reader that is taken out by others", LockExclusion, "it was taken out of the shared lock",
			commit(hooks{
				"do0": func(w *world) { w.share(guard, both) },
				"do2": func(w *world) { w.share(guard, readersOf{uids: []string{otherUID}}); gone(w) },
			})},
		{"a reader that joins before a writer that waits", LockExclusion, "was held until 2026-01-01T00:05:00Z",
			commit(hooks{"do0": func(w *world) {
				w.share(guard, readersOf{uids: []string{otherUID}, next: thirdUID})
				w.share(guard, readersOf{uids: []string{otherUID, txnUID}, since: map[string]time.Duration{txnUID: time.Minute}})
			}, "handover": gone})},
		{"two that join at once", LockExclusion, "has two readers more or renewed",
			commit(hooks{"handover": func(w *world) {
				w.share(guard, readersOf{uids: []string{otherUID}})
				w.share(guard, readersOf{uids: []string{otherUID, thirdUID, txnUID}})
				gone(w)
			}})},
		{"a change under a lock that is only shared", LockExclusion, "while its lock shop/janus-lock-a was held by janus.io/shared",
			commit(hooks{"do0": func(w *world) { w.remove(lockOf(mapA), ""); w.share(mapA, readersOf{uids: []string{txnUID}}) }})},
		{"a share of a lock that is left", NothingLeft, "is still held by janus.io/shared",
			commit(hooks{"do0": func(w *world) { w.share(guard, both) }})},
		{"a wish for a lock that is left", NothingLeft, "is still held by janus.io/shared, or waits for it",
			commit(hooks{"do0": func(w *world) { w.share(guard, readersOf{uids: []string{otherUID}, next: txnUID}) }})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestReadersMayShareALockAndAWriterComesAfterThem(t *testing.T) {
	w := commit(hooks{
		"do0": func(w *world) {
			w.share(guard, readersOf{uids: []string{otherUID}})
			w.share(guard, readersOf{uids: []string{otherUID, txnUID}})
			w.share(guard, readersOf{uids: []string{otherUID, txnUID}, next: thirdUID})
			w.share(guard, readersOf{uids: []string{otherUID, txnUID}, next: thirdUID, since: map[string]time.Duration{txnUID: time.Minute}})
		},
		"release": func(w *world) {
			w.share(guard, readersOf{uids: []string{otherUID}, next: thirdUID})
			w.share(guard, readersOf{next: thirdUID})
			w.lock(guard, thirdUID, time.Second)
			w.remove(lockOf(guard), "")
		},
	})
	assert.Empty(t, lines(w.breaches()))
}

package oracle

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

func dying(o tree) { o["metadata"].(tree)["deletionTimestamp"] = "2026-01-01T00:00:00Z" }

func TestWhatIsNoRestorationIsFound(t *testing.T) {
	const other = "cccccccc-0000-4000-8000-000000000009"
	for _, c := range []wrong{
		{"another client's object in place of a deleted one", Atomicity, "is what another client has made since",
			rollBackAll(hooks{"-undo3": func(w *world) {
				w.foreign(mapC, "somebody", func(o tree) { o["data"] = tree{"other": "thing"} })
			}, "-owners3": nothing})},
		{"a restoration of what another client has made", NoLostWrite, "is of what another client has made in place of uid",
			rollBack(hooks{"open0": func(w *world) {
				w.foreignDelete(mapA)
				w.foreign(mapA, "somebody", func(o tree) { o["data"] = tree{"color": "blue"} })
			}})},
		{"a target that was on its way out", DurableIntent, "and shop/configmaps/a@104 was being deleted",
			commit(hooks{"begin": func(w *world) { w.foreign(mapA, "somebody", dying) }})},
		{"before-images without a finalizer", DurableIntent, "have no finalizer: they go when it is deleted in the foreground",
			commit(hooks{"-images": func(w *world) {
				w.saveImages()
				last := w.evidence.History[len(w.evidence.History)-1]
				last.Object.SetFinalizers(nil)
			}})},
		{"a change as another ServiceAccount of the same name", Identity, "of uid of-another, which had gone before its intent was recorded",
			commit(hooks{"begin": func(w *world) {
				w.foreign(Ref{serviceAccounts, ns, "deployer"}, "tester", func(o tree) { o["metadata"].(tree)["uid"] = "of-another" })
			}, "intent": func(w *world) {
				w.checkpoint(func(s tree) { s["serviceAccountUID"] = "of-another" })
				w.foreignDelete(Ref{serviceAccounts, ns, "deployer"})
			}})},
		{"a refusal that is not believed", Termination, "it was refused 79 times, and asked for again",
			commit(hooks{"after": func(w *world) {
				for range mostRefusals + 1 {
					w.request(faultinject.Call{Method: "POST", User: account}, mapB, nil, nil).Code = 403
				}
			}})},
		{"an intent under a lock that has passed to another", LockExclusion, "while its lock shop/janus-lock-c was held by shop/txn/" + other,
			commit(hooks{"record0": func(w *world) { w.lock(mapC, other, time.Hour) }})},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestALockThatPassesWhileAChangeIsUnderWayIsNoBreach(t *testing.T) {
	w := commit(hooks{"do3": func(w *world) { w.lock(mapC, "cccccccc-0000-4000-8000-000000000009", time.Hour) }})
	assert.Empty(t, lines(w.breaches()))
}

func TestALostStatusIsFound(t *testing.T) {
	was := targets
	widget := Ref{"widgets.example.com", ns, "w"}
	targets = []Ref{mapA, mapB, webD, widget}
	defer func() { targets = was }()
	w := rollBackAll(hooks{
		"begin": func(w *world) {
			w.foreign(widget, "tester", func(o tree) { o["status"] = tree{"seen": "before"} })
		},
		"-do3": func(w *world) { w.remove(widget, account) },
		"-undo3": func(w *world) {
			w.send("POST", widget, asItem(3), "Widget", func(o tree) { own(o, manager(3), true) })
		},
	})
	expect(t, w.breaches(), Atomicity, `was made anew with status nothing, and had {"seen":"before"}`)
}

func TestACancellationThatIsNotCarriedOutIsFound(t *testing.T) {
	for phase, want := range map[string]string{"Committing": "while it was Committing, with onDelete Rollback, and went", "RollingBack": "while it was RollingBack, and went"} {
		s := tell(nil)
		s.spec.OnDelete = api.DeleteRollback
		s.prepare()
		s.do(0)
		s.checkpoint(func(status tree) { status["phase"] = phase })
		s.foreign(txn, "somebody", dying)
		s.end(txn)
		expect(t, s.breaches(), Atomicity, want)
	}
}

func TestProtobufIsRead(t *testing.T) {
	var body bytes.Buffer
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "janus-lock-a", UID: "u", ResourceVersion: "7"}}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	require.NoError(t, wire.Encode(lease, &body))
	assert.Equal(t, skimmed{kind: "Lease", name: "janus-lock-a", uid: "u", version: "7"}, skim(body.Bytes()))
	assert.Equal(t, "k8s\x00what", string(plain([]byte("k8s\x00what"))))
}

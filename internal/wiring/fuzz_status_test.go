package wiring

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

// FuzzEditedStatus: whatever another client has made of the status, what is derived from it
// is an error or holds, and a target whose before-image is not named is not taken for
// one that may be written.
func FuzzEditedStatus(f *testing.F) {
	for _, status := range []string{
		`{}`, `{"items":null}`, `{"items":[{}]}`, `{"items":[{},{},{},{}]}`, `{"items":[{"before":{"uid":"u"}},{"before":null}],"rollbackRef":{}}`,
		`{"items":[{"name":"0","resource":"configmaps","target":{"apiVersion":"a/b/c","kind":"ConfigMap","name":"a"}}]}`,
		`{"items":[{"lockLease":"nonsense","target":{"apiVersion":"v1","kind":"ConfigMap","name":"a"}},{"lockLease":"/","recreatedUID":"x","target":{"apiVersion":"v1","kind":"ConfigMap","name":"a"}}]}`,
		`{"items":[{"state":"RolledBack","before":{"key":"k","digest":"d","uid":"u"}},{"state":"Unresolved","before":{"uid":"u"}}],"rollbackRef":{"objects":["ConfigMap/t-rollback","Secret/other",""]}}`,
	} {
		f.Add([]byte(status), "Update", "Delete")
		f.Add([]byte(status), "Delete", "Create")
		f.Add([]byte(status), "Patch", "Nonsense")
	}
	f.Fuzz(func(t *testing.T, data []byte, one, other string) {
		txn := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "t", UID: "u"}}
		for _, kind := range []string{one, other} {
			txn.Spec.Changes = append(txn.Spec.Changes, api.Change{Type: api.ChangeType(kind), Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}})
		}
		if json.Unmarshal(data, &txn.Status) != nil {
			return
		}
		s := session{shared: &shared{images: newImages()}, txn: txn}
		if _, _, err := keysOf(txn); err != nil {
			return
		}
		chains, err := chainsOf(txn)
		if err != nil {
			t.Fatal(err)
		}
		for _, chain := range chains {
			if chain.first > chain.last || chain.last >= len(txn.Status.Items) {
				t.Fatalf("items %d to %d of %d", chain.first, chain.last, len(txn.Status.Items))
			}
		}
		for i := range txn.Status.Items {
			checkBaseline(t, s, i)
			ref, err := refOf(txn.Status.Items[i])
			if err != nil {
				t.Fatal(err)
			}
			recreated(txn, i, ref)
			ownerRefs{session: s}.Deleted("u")
		}
	})
}

func checkBaseline(t *testing.T, s session, i int) {
	t.Helper()
	txn := s.txn
	if txn.Status.Items[i].Before != nil && txn.Status.RollbackRef != nil {
		return // It would be read.
	}
	before := s.baseline(i)
	if _, err := before.Image(t.Context()); errclass.ReasonOf(err) != errclass.BeforeImageLost {
		t.Fatalf("the image of item %d, which is not named: %v", i, err)
	}
	if txn.Status.Items[i].Before == nil && (!before.Absent() || before.Version != mutate.Version{}) {
		t.Fatalf("item %d may write what is at %v", i, before.Version)
	}
}

package oracle

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// transact adds a Transaction that has read objects at revisions and written them at
// others, in the order of its items.
func transact(e *Evidence, name string, phase api.Phase, objects []string, reads, writes []int64) {
	uid := types.UID(name + "-uid-of-it")
	run := Run{Namespace: "shop", Name: name, UID: uid}
	var items []any
	for i, object := range objects {
		run.Items = append(run.Items, Ref{Resource: "configmaps", Namespace: "shop", Name: object})
		items = append(items, map[string]any{"before": map[string]any{"resourceVersion": fmt.Sprint(reads[i])}})
	}
	for i, revision := range writes {
		object := objects[i%len(objects)]
		e.Calls = append(e.Calls, faultinject.Call{
			Kind: faultinject.Write, Method: "PATCH", Resource: "configmaps", Namespace: "shop", Name: object, Code: 200,
			FieldManager: fmt.Sprintf("janus-%s-%d", uid[:8], i%len(objects)),
			Answer:       []byte(fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":"%d"}}`, object, revision)),
		})
	}
	e.Runs = append(e.Runs, run)
	e.History = append(e.History, Version{
		Ref: Ref{Resource: "transactions.backup.janus.io", Namespace: "shop", Name: name},
		Object: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "shop"},
			"status":   map[string]any{"phase": string(phase), "items": items},
		}},
	})
}

func TestTransactionsOneAfterTheOtherAreSerializable(t *testing.T) {
	var e Evidence
	transact(&e, "first", api.PhaseCommitted, []string{"a", "b"}, []int64{1, 2}, []int64{11, 12})
	transact(&e, "second", api.PhaseCommitted, []string{"b", "a"}, []int64{12, 11}, []int64{13, 14})
	assert.Empty(t, Serializable(e))
}

func TestALostUpdateIsNotSerializable(t *testing.T) {
	var e Evidence
	transact(&e, "first", api.PhaseCommitted, []string{"a"}, []int64{1}, []int64{11})
	transact(&e, "second", api.PhaseCommitted, []string{"a"}, []int64{1}, []int64{12})
	breaches := Serializable(e)
	if assert.Len(t, breaches, 1) {
		assert.Equal(t, Isolation, breaches[0].Guarantee)
		assert.Contains(t, breaches[0].Message, "shop/first wrote shop/configmaps/a at 11")
	}
}

func TestTransactionsThatCrossAreNotSerializable(t *testing.T) {
	var e Evidence
	transact(&e, "first", api.PhaseCommitted, []string{"a", "b"}, []int64{1, 14}, []int64{11, 15})
	transact(&e, "second", api.PhaseCommitted, []string{"a", "b"}, []int64{11, 2}, []int64{13, 14})
	assert.Len(t, Serializable(e), 1)
}

func TestReadingWhatIsRolledBackIsNoIsolation(t *testing.T) {
	var e Evidence
	transact(&e, "first", api.PhaseRolledBack, []string{"a"}, []int64{1}, []int64{11, 15})
	transact(&e, "second", api.PhaseCommitted, []string{"a"}, []int64{11}, []int64{16})
	breaches := Serializable(e)
	if assert.Len(t, breaches, 1) {
		assert.Contains(t, breaches[0].Message, "has read what")
	}
	e = Evidence{}
	transact(&e, "first", api.PhaseRolledBack, []string{"a"}, []int64{1}, []int64{11, 15})
	transact(&e, "second", api.PhaseCommitted, []string{"a"}, []int64{15}, []int64{16})
	assert.Empty(t, Serializable(e))
}

// Who reads between two writes of a Transaction has read what it was half done with.
func TestReadingBetweenTwoWritesOfATransactionIsNotSerializable(t *testing.T) {
	var e Evidence
	transact(&e, "first", api.PhaseCommitted, []string{"a"}, []int64{1}, []int64{11, 15})
	transact(&e, "second", api.PhaseCommitted, []string{"a"}, []int64{11}, []int64{16})
	breaches := Serializable(e)
	if assert.Len(t, breaches, 1) {
		assert.Contains(t, breaches[0].Message, "shop/second read shop/configmaps/a at 11, shop/first wrote it at 15")
	}
	e = Evidence{}
	transact(&e, "first", api.PhaseCommitted, []string{"a"}, []int64{1}, []int64{11, 15})
	transact(&e, "second", api.PhaseCommitted, []string{"a"}, []int64{15}, []int64{16})
	assert.Empty(t, Serializable(e))
}

package engine

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// kept is a Transaction as it is kept, so that what is left of it can be let go of when it
// is gone: all of one that has not ended, and what remains of one that has. Those may be
// thousands at a time; encoded, they take a quarter of the memory.
type kept struct {
	name    types.NamespacedName
	whole   *api.Transaction // nil of one that has ended
	encoded []byte
}

func keptOf(t *api.Transaction) kept {
	k := kept{name: types.NamespacedName{Namespace: t.Namespace, Name: t.Name}}
	if !t.Status.Phase.Terminal() {
		k.whole = t
		return k
	}
	encoded, err := json.Marshal(remains(t))
	if err != nil {
		panic(fmt.Sprintf("encode what remains of Transaction %s: %v", k.name, err)) // It has been decoded from JSON.
	}
	k.encoded = encoded
	return k
}

// transaction gives it; it is not to be changed.
func (k kept) transaction() *api.Transaction {
	if k.whole != nil {
		return k.whole
	}
	t := &api.Transaction{}
	if err := json.Unmarshal(k.encoded, t); err != nil {
		panic(fmt.Sprintf("decode what remains of Transaction %s: %v", k.name, err)) // It was encoded by keptOf.
	}
	return t
}

// remains is what is kept of a Transaction that has ended: all but the contents, and what
// only a reader of the status needs.
func remains(t *api.Transaction) *api.Transaction {
	out := &api.Transaction{TypeMeta: t.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: t.Namespace, Name: t.Name, UID: t.UID, ResourceVersion: t.ResourceVersion, DeletionTimestamp: t.DeletionTimestamp,
	}}
	out.Spec.LockTimeout = t.Spec.LockTimeout
	for _, change := range t.Spec.Changes {
		out.Spec.Changes = append(out.Spec.Changes, api.Change{When: change.When})
	}
	out.Status = api.TransactionStatus{
		Phase: t.Status.Phase, Version: t.Status.Version, CompletionTime: t.Status.CompletionTime,
		RollbackRef: t.Status.RollbackRef, Revision: t.Status.Revision,
	}
	for _, item := range t.Status.Items {
		out.Status.Items = append(out.Status.Items, api.Item{
			Target: item.Target, Resource: item.Resource, State: item.State, LockLease: item.LockLease,
		})
	}
	return out
}

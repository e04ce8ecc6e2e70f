package memory

import (
	"cmp"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// kept is a Transaction as it is kept, so that its leftovers can be removed when it is
// gone: all of one that has not ended, and what remains of one that has. Those may be
// thousands at a time; encoded, they take a fraction of the memory.
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
	encoded, err := json.Marshal(remainsOf(t))
	if err != nil {
		panic(fmt.Sprintf("encode what remains of Transaction %s: %v", k.name, err)) // It has been decoded from JSON.
	}
	k.encoded = encoded
	return k
}

// transaction returns it; it is not to be changed.
func (k kept) transaction() *api.Transaction {
	if k.whole != nil {
		return k.whole
	}
	var r remains
	if err := json.Unmarshal(k.encoded, &r); err != nil {
		panic(fmt.Sprintf("decode what remains of Transaction %s: %v", k.name, err)) // It was encoded by keptOf.
	}
	return r.transaction(k.name)
}

// remains is what is kept of a Transaction that has ended: all but the contents, and what
// only a reader of the status needs. The names are short because there are many of them.
type remains struct {
	UID         types.UID         `json:"u"`
	Version     string            `json:"v"` // resourceVersion
	Deletion    *metav1.Time      `json:"d,omitempty"`
	LockTimeout *api.Duration     `json:"l,omitempty"`
	Whens       []string          `json:"w"` // of each change, or what else it is asked for in its turn
	Phase       api.Phase         `json:"p"`
	Checkpoints int64             `json:"c"` // status.version
	Completion  *metav1.Time      `json:"e,omitempty"`
	Images      *api.RollbackRef  `json:"b,omitempty"`
	Revision    int64             `json:"r,omitempty"`
	Digest      string            `json:"g,omitempty"` // of the revision
	Items       []remainsOfAnItem `json:"i"`
}

type remainsOfAnItem struct {
	Target   api.Target    `json:"t"`
	Resource string        `json:"r,omitempty"`
	State    api.ItemState `json:"s"`
	Lease    string        `json:"l,omitempty"`
}

func remainsOf(t *api.Transaction) remains {
	r := remains{
		UID: t.UID, Version: t.ResourceVersion, Deletion: t.DeletionTimestamp, LockTimeout: t.Spec.LockTimeout,
		Phase: t.Status.Phase, Checkpoints: t.Status.Version, Completion: t.Status.CompletionTime,
		Images: t.Status.RollbackRef, Revision: t.Status.Revision, Digest: t.Status.RevisionDigest,
	}
	for i, change := range t.Spec.Changes {
		asked := change.When
		if change.Activation != nil {
			asked = cmp.Or(asked, change.Activation.String())
		}
		if i < len(t.Status.Items) && len(t.Status.Items[i].DeletedWith) > 0 {
			asked = cmp.Or(asked, "deleted with another")
		}
		r.Whens = append(r.Whens, asked)
	}
	for _, item := range t.Status.Items {
		r.Items = append(r.Items, remainsOfAnItem{item.Target, item.Resource, item.State, item.LockLease})
	}
	return r
}

func (r remains) transaction(name types.NamespacedName) *api.Transaction {
	t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name, UID: r.UID, ResourceVersion: r.Version, DeletionTimestamp: r.Deletion,
	}}
	t.SetGroupVersionKind(api.Kind)
	t.Spec.LockTimeout = r.LockTimeout
	for _, when := range r.Whens {
		t.Spec.Changes = append(t.Spec.Changes, api.Change{When: when})
	}
	t.Status = api.TransactionStatus{
		Phase: r.Phase, Version: r.Checkpoints, CompletionTime: r.Completion, RollbackRef: r.Images, Revision: r.Revision,
		RevisionDigest: r.Digest,
	}
	for _, item := range r.Items {
		t.Status.Items = append(t.Status.Items, api.Item{
			Target: item.Target, Resource: item.Resource, State: item.State, LockLease: item.Lease,
		})
	}
	return t
}

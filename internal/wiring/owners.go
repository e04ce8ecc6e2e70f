package wiring

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// ownerRefs knows the owners of a target, and the other Deletes of the Transaction. It answers from the Transaction as stored.
type ownerRefs struct {
	session
	// namespace is that of the target.
	namespace string
}

// Owner looks an owner up as the ServiceAccount.
func (k ownerRefs) Owner(ctx context.Context, reference metav1.OwnerReference) (types.UID, bool, error) {
	ref, err := k.resolver.ResolveOwner(reference, k.namespace)
	if errclass.Is(err, errclass.KindNotFound) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	live, err := target.Confirmed(func() (*unstructured.Unstructured, error) {
		return k.id.Resource(ref).Get(ctx, reference.Name, metav1.GetOptions{})
	})
	switch {
	case errclass.Unserved(err):
		return "", false, nil
	case errclass.Is(err, errclass.NotFound):
		return "", true, nil
	case err != nil:
		return "", false, errclass.Wrap(err, "read the owner", ref.String(), false)
	case live.GetDeletionTimestamp() != nil:
		return "", true, nil
	default:
		return live.GetUID(), true, nil
	}
}

// Deleted tells from the status alone: it has the uid of every target.
func (k ownerRefs) Deleted(uid types.UID) bool {
	for j, item := range k.txn.Status.Items {
		if k.deletes(j) && item.Before.UID == uid && !item.Restored() && (item.State == api.ItemCommitted || item.State == api.ItemRollingBack) {
			return true
		}
	}
	return false
}

// CreatedAgain tells from the status, too.
func (k ownerRefs) CreatedAgain(uid types.UID) types.UID {
	for j := range k.txn.Status.Items {
		if k.deletes(j) && k.txn.Status.Items[j].Before.UID == uid {
			return k.txn.Status.Items[j].RecreatedUID
		}
	}
	return ""
}

// ToBeDeleted tells from the status, too.
func (k ownerRefs) ToBeDeleted(uid types.UID) bool {
	for j, item := range k.txn.Status.Items {
		if item.CreatedUID == uid && uid != "" && plan.Creates(k.txn, j) && !item.Restored() && (item.State == api.ItemCommitted || item.State == api.ItemRollingBack) {
			return true
		}
	}
	return false
}

// deletes reports whether item j is a Delete of an object that was there.
func (k ownerRefs) deletes(j int) bool {
	before := k.txn.Status.Items[j].Before
	return j < len(k.txn.Spec.Changes) && plan.Deletes(k.txn, j) && before != nil && before.UID != ""
}

// deletesToo reports whether a change of the Transaction is yet to delete another object.
func (s session) deletesToo(kind schema.GroupKind, name types.NamespacedName) bool {
	for j := range s.txn.Status.Items {
		ref, err := refOf(s.txn.Status.Items[j])
		ahead := plan.Deletes(s.txn, j) && s.txn.Status.Items[j].State != api.ItemCommitted
		if err == nil && ahead && ref.GVK.GroupKind() == kind && ref.Namespace == name.Namespace && ref.Name == name.Name {
			return true
		}
	}
	return false
}

// createdFirst reports whether a change that comes before item i is yet to create another object. Its kind
// may not be served yet.
func (s session) createdFirst(i int, kind schema.GroupKind, name types.NamespacedName) bool {
	other := api.Target{APIVersion: kind.Group, Kind: kind.Kind, Namespace: name.Namespace, Name: name.Name}
	for _, j := range plan.ScheduleOf(s.txn).Order {
		if j == i {
			break
		}
		item := &s.txn.Status.Items[j]
		if item.Target.Identity() == other && plan.ChangeOf(s.txn, j).Type == api.Create && item.Changes() {
			return item.State != api.ItemCommitted
		}
	}
	return false
}

// Dependents reads the before-images of later Deletes, each once while this process
// runs.
func (k ownerRefs) Dependents(ctx context.Context, uid types.UID) ([]mutate.Dependent, error) {
	var out []mutate.Dependent
	for j := range k.txn.Status.Items {
		item := &k.txn.Status.Items[j]
		if !k.deletes(j) || !item.Restored() && item.State != api.ItemUnresolved {
			continue
		}
		owned, err := k.images.ownedBy(k.txn.UID, j, uid, func() ([]metav1.OwnerReference, error) {
			record, err := k.record(ctx, j)
			if err != nil || record.Before == nil {
				return nil, err
			}
			return record.Before.GetOwnerReferences(), nil
		})
		if err != nil {
			return nil, err
		}
		if !owned {
			continue
		}
		dependent, err := k.dependent(ctx, j)
		if err != nil {
			return nil, err
		}
		out = append(out, dependent)
	}
	return out, nil
}

func (k ownerRefs) dependent(ctx context.Context, j int) (mutate.Dependent, error) {
	record, err := k.record(ctx, j)
	if err != nil {
		return mutate.Dependent{}, err
	}
	change, err := k.changeOf(j, nil)
	if err != nil {
		return mutate.Dependent{}, err
	}
	if err := sameTarget(record, change); err != nil {
		return mutate.Dependent{}, err
	}
	return mutate.Dependent{Change: change, Before: record.Before}, nil
}

// ownedBy reports whether the before-image of an item names an owner. read returns its
// owners when they are not known yet; they never change.
func (m *images) ownedBy(txn types.UID, item int, owner types.UID, read func() ([]metav1.OwnerReference, error)) (bool, error) {
	m.mu.Lock()
	known, ok := m.readers[txn].owners[item]
	m.mu.Unlock()
	if !ok {
		references, err := read()
		if err != nil {
			return false, err
		}
		known = map[types.UID]bool{}
		for _, r := range references {
			known[r.UID] = true
		}
		m.mu.Lock()
		if of, open := m.readers[txn]; open {
			of.owners[item] = known
		}
		m.mu.Unlock()
	}
	return known[owner], nil
}

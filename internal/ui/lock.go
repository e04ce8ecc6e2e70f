package ui

import (
	"context"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/sharedlease"
)

// Lock is the lock of a target of a Transaction that has not ended.
type Lock struct {
	Lease string   `json:"lease"`
	Items []string `json:"items"`
	// Holder is who has it: a Transaction as namespace/name, or the name that a client
	// gives itself. If guards share it, they are separated by commas.
	Holder string `json:"holder"`
	// Ours is true if it is the Transaction that is looked at, or that is one of them.
	Ours    bool   `json:"ours"`
	Renewed string `json:"renewed"`
	// Waiting are the other Transactions that wait for it.
	Waiting []string `json:"waiting"`
}

// locks says who holds the locks that a Transaction has or wants, and who else wants them. One
// that waits for a lock does not name its Lease: the holder does, if it is a Transaction.
func (h *handler) locks(ctx context.Context, t *api.Transaction) (found []Lock, unread []string) {
	found = []Lock{}
	if t.Status.CompletionTime != nil {
		return found, nil
	}
	all, err := h.reader.Transactions(ctx)
	if err != nil {
		unread = append(unread, "who else has or wants the locks: "+err.Error())
	}
	others := slices.DeleteFunc(slices.Clone(all), func(o *api.Transaction) bool { return o.UID == t.UID || o.Status.CompletionTime != nil })
	names := leaseNames(append(slices.Clone(others), t))
	at := map[string]int{}
	for _, item := range t.Status.Items {
		of := item.Target.Identity()
		lease, known := names[of]
		if !known {
			continue
		}
		if i, seen := at[lease]; seen {
			found[i].Items = append(found[i].Items, item.Name)
			continue
		}
		at[lease] = len(found)
		found = append(found, Lock{Lease: lease, Items: []string{item.Name}, Waiting: wanting(of, others)})
	}
	leases, denied := h.leases(ctx, found)
	for i := range found {
		lease := leases[found[i].Lease]
		hold(&found[i], &lease, t)
	}
	return found, append(unread, denied...)
}

// leaseNames returns the Leases that lock objects for Transactions.
func leaseNames(transactions []*api.Transaction) map[api.Target]string {
	out := map[api.Target]string{}
	for _, t := range transactions {
		for _, item := range t.Status.Items {
			if item.LockLease != "" {
				out[item.Target.Identity()] = item.LockLease
			}
		}
	}
	return out
}

// leases reads the Leases of locks, by namespace/name.
func (h *handler) leases(ctx context.Context, locks []Lock) (found map[string]coordinationv1.Lease, unread []string) {
	found = map[string]coordinationv1.Lease{}
	read := map[string]bool{}
	for _, l := range locks {
		namespace, _, _ := strings.Cut(l.Lease, "/")
		if read[namespace] {
			continue
		}
		read[namespace] = true
		list, err := h.reader.Leases(ctx, namespace)
		if err != nil {
			unread = append(unread, "locks in namespace "+namespace+": "+err.Error())
		}
		for _, lease := range list {
			found[lease.Namespace+"/"+lease.Name] = lease
		}
	}
	return found, unread
}

// hold fills in who holds a lock.
func hold(l *Lock, lease *coordinationv1.Lease, t *api.Transaction) {
	if lease.Spec.RenewTime != nil {
		l.Renewed = stamp(&metav1.Time{Time: lease.Spec.RenewTime.Time})
	}
	holders := sharedlease.Holders(lease)
	for i, holder := range holders {
		if name, uid, ok := api.ParseHolder(holder); ok {
			holders[i], l.Ours = name.String(), l.Ours || uid == t.UID
		}
	}
	l.Holder = strings.Join(holders, ", ")
}

// wanting lists the Transactions that wait for locks and want that of an object.
func wanting(of api.Target, others []*api.Transaction) []string {
	out := []string{}
	for _, o := range others {
		ready := meta.FindStatusCondition(o.Status.Conditions, api.ConditionReady)
		if ready == nil || ready.Reason != errclass.LockHeld {
			continue
		}
		if slices.ContainsFunc(o.Status.Items, func(i api.Item) bool { return i.LockLease == "" && i.Target.Identity() == of }) {
			out = append(out, o.Namespace+"/"+o.Name)
		}
	}
	return out
}

package ui

import (
	"context"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/sharedlease"
)

// Lock is the lock of a target of a Transaction that has not ended.
type Lock struct {
	Lease string   `json:"lease"`
	Items []string `json:"items"`
	// Holder is who has it: a Transaction as namespace/name, or the name that a client
	// gives itself. If guards share it, they are separated by commas.
	Holder string `json:"holder"`
	// Transaction is set if the holder is one Transaction.
	Transaction bool `json:"transaction"`
	// Ours is true if it is the Transaction that is looked at, or that is one of them.
	Ours    bool   `json:"ours"`
	Held    string `json:"held"`
	Renewed string `json:"renewed"`
	// Lasts is for how many seconds it lasts since it was renewed.
	Lasts int32 `json:"lasts"`
	// Waiting are the other Transactions that wait for it.
	Waiting []string `json:"waiting"`
	// Broken says why the locks of these items cannot be told: the Lease is the table of the
	// locks of the namespace, and cannot be read.
	Broken string `json:"broken"`
}

// locks says who holds the locks that a Transaction has or wants, and who else wants them. One
// that waits for a lock does not name its Lease: the holder does, if it is a Transaction, and
// otherwise it has the name that the lock would have.
func (h *handler) locks(ctx context.Context, t *api.Transaction) (found []Lock, unread []string) {
	if t.Status.CompletionTime != nil {
		return []Lock{}, nil
	}
	all, err := h.reader.Transactions(ctx)
	if err != nil {
		unread = append(unread, "who else has or wants the locks: "+err.Error())
	}
	others := slices.DeleteFunc(slices.Clone(all), func(o *api.Transaction) bool { return o.UID == t.UID || o.Status.CompletionTime != nil })
	names := leaseNames(append(slices.Clone(others), t))
	at := map[string]int{}
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		of := item.Target.Identity()
		lease, known := names[of]
		if !known && h.options.LeaseOf != nil && item.Resource != "" && waitsForLocks(t) {
			lease, known = h.options.LeaseOf(item.Target, item.Resource), true
		}
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
	return held(found, leases, t), append(unread, denied...)
}

// held fills in who holds the locks. One that nobody holds and no Transaction names is none. Those of a
// namespace of which the table cannot be read are one.
func held(locks []Lock, leases map[string]coordinationv1.Lease, t *api.Transaction) []Lock {
	out, broken := []Lock{}, map[string]int{}
	for _, l := range locks {
		namespace, _, _ := strings.Cut(l.Lease, "/")
		table := leases[namespace+"/"+leasetable.Name]
		lease, there := leases[l.Lease]
		switch why := leasetable.Broken(&table); {
		case !there && why != nil:
			i, seen := broken[namespace]
			if !seen {
				broken[namespace] = len(out)
				out = append(out, Lock{Lease: namespace + "/" + leasetable.Name, Items: l.Items, Waiting: []string{}, Broken: errclass.Message(why)})
				continue
			}
			out[i].Items = append(out[i].Items, l.Items...)
		case there || !waitsForLocks(t):
			hold(&l, &lease, t)
			out = append(out, l)
		}
	}
	return out
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
	l.Held, l.Renewed, l.Lasts = micro(lease.Spec.AcquireTime), micro(lease.Spec.RenewTime), ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
	holders := sharedlease.Holders(lease)
	for i, holder := range holders {
		name, uid, ok := api.ParseHolder(holder)
		if ok {
			holders[i], l.Ours = name.String(), l.Ours || uid == t.UID
		}
		l.Transaction = ok && len(holders) == 1
	}
	l.Holder = strings.Join(holders, ", ")
}

func micro(t *metav1.MicroTime) string {
	if t == nil {
		return ""
	}
	return stamp(&metav1.Time{Time: t.Time})
}

// wanting lists the Transactions that wait for locks and want that of an object.
func wanting(of api.Target, others []*api.Transaction) []string {
	out := []string{}
	for _, o := range others {
		if !waitsForLocks(o) {
			continue
		}
		if slices.ContainsFunc(o.Status.Items, func(i api.Item) bool { return i.LockLease == "" && i.Target.Identity() == of }) {
			out = append(out, o.Namespace+"/"+o.Name)
		}
	}
	return out
}

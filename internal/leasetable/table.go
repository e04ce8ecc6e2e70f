package leasetable

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/sharedlease"
)

const (
	// Name is the name of a table. It begins like that of a lock, so that the policy which protects
	// locks protects it, and no lock has it: that ends with a hash.
	Name = "janus-lock-namespace"
	// Annotation has the entries, as JSON.
	Annotation = "janus.io/leases"
	// label and managedBy say whose it is.
	label, managedBy = "app.kubernetes.io/managed-by", "janus"
)

// A group is what Leases that were written together have in common, and their names. The format is read by
// every janusd of the cluster, also during an upgrade.
type group struct {
	Spec        coordinationv1.LeaseSpec `json:"spec"`
	Labels      map[string]string        `json:"labels,omitempty"`
	Annotations map[string]string        `json:"annotations,omitempty"`
	Owners      []metav1.OwnerReference  `json:"owners,omitempty"`
	// Leases has, by name, the resourceVersion of the creation of each, and behind a blank that of
	// its last writing if that is another.
	Leases map[string]string `json:"leases"`
}

// entries are the Leases of a table, by name. They are not changed.
type entries map[string]*coordinationv1.Lease

// Expand puts the Leases that are in tables in the place of these. A table that cannot be read stays as it
// is, for Broken to say why.
func Expand(leases []coordinationv1.Lease) []coordinationv1.Lease {
	var out []coordinationv1.Lease
	for i := range leases {
		found, err := decode(&leases[i])
		if leases[i].Name != Name || err != nil {
			out = append(out, leases[i])
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			out = append(out, *found[name])
		}
	}
	return out
}

// BrokenError says that a table cannot be read, as namespace/name. No lock in it can be.
type BrokenError struct {
	Table string
	Err   error
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("decode Lease %s, a table of locks: annotation %s: %v; delete it once no Transaction runs in that namespace", e.Table, Annotation, e.Err)
}

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// Broken says why a Lease is a table that cannot be read, and nothing of any other Lease.
func Broken(lease *coordinationv1.Lease) error {
	if lease.Name != Name {
		return nil
	}
	_, err := decode(lease)
	return err
}

// Find returns a Lease that is an object, or in the table. The error is that of a read.
func Find(ctx context.Context, objects coordinationv1client.LeaseInterface, name string) (*coordinationv1.Lease, error) {
	found, err := objects.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	table, missing := objects.Get(ctx, Name, metav1.GetOptions{})
	if missing != nil {
		return nil, missing
	}
	all, failed := decode(table)
	if failed != nil {
		return nil, failed
	}
	if all[name] == nil {
		return nil, err
	}
	return all[name], nil
}

// decode reads the entries of a table.
func decode(table *coordinationv1.Lease) (entries, error) {
	var groups []group
	if text := table.Annotations[Annotation]; text != "" {
		if err := json.Unmarshal([]byte(text), &groups); err != nil {
			return nil, &BrokenError{Table: table.Namespace + "/" + table.Name, Err: err}
		}
	}
	out := entries{}
	for _, g := range groups {
		for name, versions := range g.Leases {
			created, written, again := strings.Cut(versions, " ")
			if !again {
				written = created
			}
			out[name] = &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: table.Namespace, Name: name, UID: uidOf(table.UID, created), ResourceVersion: written,
					Labels: g.Labels, Annotations: g.Annotations, OwnerReferences: g.Owners,
					DeletionTimestamp: table.DeletionTimestamp, // They go with the table.
				},
				Spec: g.Spec,
			}
		}
	}
	return out, nil
}

// separator is between the uid of a table and the resourceVersion of a creation. No uid has it.
const separator = "/"

func uidOf(table types.UID, created string) types.UID { return table + types.UID(separator+created) }

// createdOf is the resourceVersion of the creation of an entry.
func createdOf(lease *coordinationv1.Lease) string {
	_, created, _ := strings.Cut(string(lease.UID), separator)
	return created
}

// groupOf is the group that an entry belongs to, without its names.
func groupOf(lease *coordinationv1.Lease) group {
	return group{Spec: lease.Spec, Labels: lease.Labels, Annotations: lease.Annotations, Owners: lease.OwnerReferences}
}

// headOf is the text of the group that an entry belongs to, without its names. It tells the groups apart.
func headOf(lease *coordinationv1.Lease) (string, error) {
	text, err := json.Marshal(groupOf(lease))
	if err != nil {
		return "", fmt.Errorf("encode Lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	return string(text), nil
}

// versionsOf is what a group says of an entry.
func versionsOf(lease *coordinationv1.Lease) string {
	created := createdOf(lease)
	if lease.ResourceVersion == created {
		return created
	}
	return created + " " + lease.ResourceVersion
}

// encode is the table with these entries, as it is to be written. Before is the table as it was, or one that
// has only a namespace if there is none.
func encode(before *coordinationv1.Lease, all entries) (*coordinationv1.Lease, error) {
	byText := map[string]*group{}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		lease := all[name]
		text, err := headOf(lease)
		if err != nil {
			return nil, err
		}
		if byText[text] == nil {
			g := groupOf(lease)
			g.Leases = map[string]string{}
			byText[text] = &g
			texts = append(texts, text)
		}
		byText[text].Leases[name] = versionsOf(lease)
	}
	groups := make([]*group, len(texts))
	for i, text := range texts {
		groups[i] = byText[text]
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return nil, fmt.Errorf("encode the table of locks of namespace %s: %w", before.Namespace, err)
	}
	table := before.DeepCopy()
	table.Name, table.ManagedFields = Name, nil
	metav1.SetMetaDataLabel(&table.ObjectMeta, label, managedBy)
	metav1.SetMetaDataAnnotation(&table.ObjectMeta, Annotation, string(text))
	// A program that does not know tables, and the policy for locks, take it for one that is shared.
	table.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To(sharedlease.Holder), LeaseDurationSeconds: ptr.To(longest(all))}
	table.OwnerReferences = owners(all)
	return table, nil
}

// longest is how many seconds the entry lasts that lasts longest, for a program that judges the table as one
// Lease.
func longest(all entries) int32 {
	seconds := int32(1)
	for _, lease := range all {
		seconds = max(seconds, ptr.Deref(lease.Spec.LeaseDurationSeconds, 1))
	}
	return seconds
}

// owners are those of all entries, or none if one has none: the garbage collector deletes a table whose
// owners are all gone.
func owners(all entries) []metav1.OwnerReference {
	byUID := map[types.UID]metav1.OwnerReference{}
	for _, lease := range all {
		if len(lease.OwnerReferences) == 0 {
			return nil
		}
		for _, owner := range lease.OwnerReferences {
			byUID[owner.UID] = owner
		}
	}
	var out []metav1.OwnerReference
	for _, uid := range slices.Sorted(maps.Keys(byUID)) {
		out = append(out, byUID[uid])
	}
	return out
}

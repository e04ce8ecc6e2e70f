package mutate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/snapshot"
)

// OwnerRefs knows the owners of the target, and the other Deletes of its Transaction. An
// object that is re-created has another uid, and what named the old one has to
// follow.
type OwnerRefs interface {
	// Owner returns the uid of the object that has the name in an owner reference now,
	// empty when there is none, or it is being deleted. known is false when it cannot be told
	// because its kind is not served. That the ServiceAccount may not read it is AccessDenied.
	Owner(ctx context.Context, reference metav1.OwnerReference) (uid types.UID, known bool, err error)
	// Deleted reports whether an earlier change of the Transaction has deleted the
	// object with that uid, and has not been rolled back.
	Deleted(uid types.UID) bool
	// Dependents returns the Deletes whose targets named that uid as an owner, and that have been
	// rolled back as far as it went: the later ones, and earlier ones for which this one was set aside.
	Dependents(ctx context.Context, uid types.UID) ([]Dependent, error)
	// CreatedAgain returns the uid that the object with a uid has since a change of the
	// Transaction, which had deleted it, was rolled back; empty if none was.
	CreatedAgain(uid types.UID) types.UID
	// ToBeDeleted reports whether a change of the Transaction has created the object with that uid,
	// and has not been rolled back.
	ToBeDeleted(uid types.UID) bool
}

// Dependent is a Delete of an object that another one owned.
type Dependent struct {
	Change
	// Before is the object as it was.
	Before *unstructured.Unstructured
}

// lineage is what has become of the owners of an object.
type lineage struct {
	// wanted is the object with the owners that it can have now.
	wanted *unstructured.Unstructured
	// pending are owners that this rollback re-creates later, gone those that nobody
	// will.
	pending, gone []metav1.OwnerReference
	// replaced is set when the object is one that a controller had made in its place.
	replaced bool
	notes    []string
}

// lineage looks the owners of a before-image up by their names. One that was
// re-created, by this rollback or by any client, has another uid.
func (c Change) lineage(ctx context.Context, before *unstructured.Unstructured) (lineage, error) {
	l := lineage{wanted: before}
	references := before.GetOwnerReferences()
	if c.Environment.OwnerRefs == nil || len(references) == 0 {
		return l, nil
	}
	now := map[types.UID]types.UID{}
	for _, owner := range references {
		uid, known, err := c.owner(ctx, owner)
		switch {
		case err != nil:
			return l, err
		case !known || uid == owner.UID:
			now[owner.UID] = owner.UID
		case uid != "" && !c.Environment.OwnerRefs.ToBeDeleted(uid):
			now[owner.UID] = uid
			l.notes = append(l.notes, moved(owner, uid))
		case c.Environment.OwnerRefs.Deleted(owner.UID):
			l.pending = append(l.pending, owner)
			l.notes = append(l.notes, fmt.Sprintf("the reference to its owner %s %s is put back when that is re-created", owner.Kind, owner.Name))
		default:
			l.gone = append(l.gone, owner)
		}
	}
	var err error
	l.wanted, err = fieldmerge.Reown(before, func(old types.UID) types.UID { return now[old] })
	if err != nil {
		return l, c.unreadableOwners(err)
	}
	return l, nil
}

// owner is Owner, but that of one that the ServiceAccount may not read it cannot be told either.
func (c Change) owner(ctx context.Context, reference metav1.OwnerReference) (uid types.UID, known bool, err error) {
	uid, known, err = c.Environment.OwnerRefs.Owner(ctx, reference)
	if errclass.Is(err, errclass.AccessDenied) {
		return "", false, nil
	}
	return uid, known, err
}

// toBeCreated reports whether an earlier change of the Transaction is yet to create an owner.
func (c Change) toBeCreated(owner metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return false
	}
	kind := version.WithKind(owner.Kind).GroupKind()
	return c.Environment.creates(kind, c.Ref.Namespace, owner.Name) || c.Environment.creates(kind, "", owner.Name)
}

// sinceCreatedAgain returns a record in which the owners that the change has taken off its target, and
// that this rollback has created again, have their new uids.
func (c Change) sinceCreatedAgain(record snapshot.Record) (_ snapshot.Record, notes []string, err error) {
	if c.Environment.OwnerRefs == nil || record.Before == nil || record.After == nil {
		return record, nil, nil
	}
	now := map[types.UID]types.UID{}
	left := record.After.GetOwnerReferences()
	for _, owner := range record.Before.GetOwnerReferences() {
		stays := slices.ContainsFunc(left, func(r metav1.OwnerReference) bool { return r.UID == owner.UID })
		if uid := c.Environment.OwnerRefs.CreatedAgain(owner.UID); uid != "" && !stays {
			now[owner.UID] = uid
			notes = append(notes, moved(owner, uid))
		}
	}
	if len(now) == 0 {
		return record, nil, nil
	}
	record.Before, err = fieldmerge.Reown(record.Before, func(old types.UID) types.UID { return cmp.Or(now[old], old) })
	if err != nil {
		return record, nil, c.unreadableOwners(err)
	}
	return record, notes, nil
}

// moved says that an owner has another uid.
func moved(owner metav1.OwnerReference, uid types.UID) string {
	return fmt.Sprintf("its owner %s %s has uid %s now, and had %s", owner.Kind, owner.Name, uid, owner.UID)
}

func (c Change) unreadableOwners(err error) error {
	return c.fail(errclass.Terminal, errclass.Invalid, "restore the field owners of", "they cannot be read: %w", err)
}

// orphaned is the error of an object that was re-created without some of its owners.
func (c Change) orphaned(gone []metav1.OwnerReference) error {
	var names []string
	for _, owner := range gone {
		names = append(names, fmt.Sprintf("%s %s (uid %s)", owner.Kind, owner.Name, owner.UID))
	}
	return c.fail(errclass.Terminal, errclass.OwnerGone, "re-create",
		"it was re-created without the reference to its owner %s, which is gone: with it the garbage collector would delete the object at once", strings.Join(names, ", ")).
		WithHint("re-create the owner and add the reference by hand, or delete the object")
}

// reunite gives the dependents of an object, re-created before it, their references
// to it back. It may be called again after any outcome.
func (c Change) reunite(ctx context.Context, uid types.UID) error {
	if c.Environment.OwnerRefs == nil {
		return nil
	}
	dependents, err := c.Environment.OwnerRefs.Dependents(ctx, uid)
	if err != nil {
		return err
	}
	for _, d := range dependents {
		if err := d.rejoin(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rejoin completes a dependent that still bears the mark of its re-creation. One
// that does not has all that it can have, or is another client's.
func (d Dependent) rejoin(ctx context.Context) error {
	for range attempts {
		live, err := Read(ctx, d.Change)
		if err != nil || live == nil || live.GetDeletionTimestamp() != nil || !d.Names.owns(live) {
			return err
		}
		l, err := d.lineage(ctx, d.Before)
		if err != nil {
			return err
		}
		_, err = d.complete(ctx, live, l)
		if !stale(err) {
			return d.wrap(err, "put the owner reference back into")
		}
	}
	return d.fail(errclass.Retryable, errclass.StaleVersion, "put the owner reference back into", "it changes faster than it can be written")
}

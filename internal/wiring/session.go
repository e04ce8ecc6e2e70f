package wiring

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
	"janus.io/janus/snapshot"
)

// shared is what the planner and the changes have in common.
type shared struct {
	clients  *target.Clients
	resolver *target.Resolver
	store    *snapshot.Store
	images   *images
	types    *openapi.Types
	parallel int
	written  *written
	patience *patience
	rights   *rights
	sources  *sources
	clock    clock.PassiveClock
}

// session is a Transaction that is worked on as its ServiceAccount.
type session struct {
	*shared
	txn *api.Transaction
	id  *target.Identity
	// undo is what the Transaction undoes, while its changes are found out from that; nil
	// otherwise.
	undo *undoing
	// load bounds what is worked on side by side; nil where one item is worked on at a time.
	load *fanout.Load
}

// loadBytes is how many bytes of contents and targets a call that works on several items
// holds. To try a change takes several times its size: it is sent, answered, compared and
// encoded. It is for each call by itself, so that a Transaction whose requests hang holds up
// no other.
const loadBytes = 2 << 20

// unread is what counts for a content or a target that has not been read.
const unread = 256 << 10

// session begins one for a Transaction.
func (s *shared) session(ctx context.Context, t *api.Transaction) (session, error) {
	id, err := s.clients.As(ctx, accountOf(t))
	return session{shared: s, txn: t, id: id}, err
}

// changeOf makes the change of an item for the strategies.
func (s session) changeOf(i int, content map[string]any) (mutate.Change, error) {
	ref, err := refOf(s.txn.Status.Items[i])
	if err != nil {
		return mutate.Change{}, err
	}
	change := s.changeOn(ref, i, content)
	change.Environment.Redefined = func(ctx context.Context) ([]mutate.Redefinition, error) { return s.redefinitions(ctx, i, ref) }
	return change, nil
}

// changeOn makes it for a target that is known.
func (s session) changeOn(ref target.Ref, i int, content map[string]any) mutate.Change {
	around := s.environment(ref)
	around.Creates = func(kind schema.GroupKind, name apitypes.NamespacedName) bool { return s.createdFirst(i, kind, name) }
	around.DeletedBefore = func(other target.Ref) bool { return s.deletedBefore(i, other) }
	return mutate.Change{
		Ref: ref, Content: content, Release: releaseOf(s.txn, i), Sensitive: s.txn.Status.Items[i].Confidential || s.store.Sensitive(ref.GVK.GroupKind()),
		Names: mutate.Names{
			Manager: managerOf(s.txn.UID, i), Family: familyOf(s.txn.UID), Marker: markerOf(s.txn.UID, i),
			Transaction: apitypes.NamespacedName{Namespace: s.txn.Namespace, Name: s.txn.Name},
		},
		Environment: around,
	}
}

// deletedBefore reports whether a change that comes before item i deletes an object.
func (s session) deletedBefore(i int, ref target.Ref) bool {
	for _, j := range plan.ScheduleOf(s.txn).Order {
		if j == i {
			return false
		}
		if other, err := refOf(s.txn.Status.Items[j]); err == nil && plan.Deletes(s.txn, j) && other.ID() == ref.ID() {
			return true
		}
	}
	return false
}

// environment is the cluster around a target.
func (s session) environment(ref target.Ref) mutate.Environment {
	return mutate.Environment{
		Account: accountOf(s.txn), Now: s.clock.Now, Cluster: s.id.Dynamic, Type: s.typeOf(ref),
		Elsewhere: func() (target.Ref, bool, error) { return s.resolver.Elsewhere(ref) },
		Versions: func(anew bool) ([]mutate.Served, error) {
			refs, err := s.resolver.Versions(ref, anew)
			var out []mutate.Served
			for _, other := range refs {
				out = append(out, mutate.Served{Ref: other, Type: s.typeOf(other)})
			}
			return out, err
		},
		OwnerRefs:  ownerRefs{session: s, namespace: ref.Namespace},
		Deletes:    s.deletesToo,
		Dependants: s.dependantsOf(ref),
		Contents:   s.contents,
	}
}

// typeOf tells how the fields of a target merge.
func (s session) typeOf(ref target.Ref) func(context.Context) (typed.ParseableType, error) {
	return func(ctx context.Context) (typed.ParseableType, error) { return s.types.Of(ctx, ref.GVK) }
}

// options are how the Transaction wants a change made.
func (s session) options(i int) mutate.Options {
	change := plan.ChangeOf(s.txn, i)
	return mutate.Options{
		Unforced:    change.Force != nil && !*change.Force,
		AcceptLoss:  change.AcceptLoss,
		Inverts:     s.txn.Spec.UndoOf != nil,
		Propagation: metav1.DeletionPropagation(change.PropagationPolicy),
		Last:        func() bool { return plan.IsLast(s.txn, i) },
		Tail:        func() bool { return plan.IsTail(s.txn, i) },
	}
}

// releaseOf is what the change of an item releases; nil if that is nothing.
func releaseOf(t *api.Transaction, i int) *fieldmerge.Release {
	if !plan.Releases(t, i) || t.Spec.UndoOf != nil {
		return nil // What an undo releases follows from what was released.
	}
	release := t.Spec.Changes[i].Release
	return &fieldmerge.Release{Managers: release.Managers, Fields: release.Fields, To: t.Spec.FieldManager}
}

// content is that of the change of an item: as the spec has it or says where it is. Of an undo, and
// of a release, it follows from what was there, and was kept with the before-image.
func (s session) content(ctx context.Context, i int) (map[string]any, error) {
	if s.txn.Spec.UndoOf == nil && !plan.Releases(s.txn, i) {
		return s.sources.content(ctx, s.txn, i, s.id)
	}
	record, err := s.record(ctx, i)
	return record.Content, err
}

// record is what was kept of an item when it was prepared.
func (s session) record(ctx context.Context, i int) (snapshot.Record, error) {
	before, ref := s.txn.Status.Items[i].Before, s.txn.Status.RollbackRef
	if before == nil || ref == nil {
		return snapshot.Record{}, imageLost(s.txn, i)
	}
	return s.images.reader(s.store, s.txn).Load(ctx, *before)
}

// baseline is what a write must meet. Its image is read only when the write met
// something else.
func (s session) baseline(i int) mutate.Baseline {
	before := s.txn.Status.Items[i].Before
	if before == nil {
		before = &api.BeforeImage{} // A target that did not exist: nothing is written that did.
	}
	return mutate.Baseline{
		Idle:    before.Unchanged,
		Version: mutate.Version{UID: before.UID, ResourceVersion: before.ResourceVersion},
		Image: func(ctx context.Context) (*unstructured.Unstructured, error) {
			record, err := s.record(ctx, i)
			return record.Before, err
		},
	}
}

package snapshot

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// maxPuts bounds how often one name is tried: once, and again when what a gone
// Transaction left there has been removed.
const maxPuts = 3

// put creates one object. If another batch of the same Transaction has its name,
// put says up to which number that one reaches, and has changed nothing.
func (s *Store) put(ctx context.Context, o Owner, b batch, c *chunk) (occupied int, err error) {
	name := objectName(o.Name, c.place.number)
	s.reach.note(o, c.place)
	for range maxPuts {
		err = s.objects.create(ctx, o.Namespace, c.place.kind, newObject(o, name, b, c))
		if err == nil {
			return 0, nil
		}
		exists := errclass.Is(err, errclass.AlreadyExists)
		err = wrap(err, "create", o.Namespace, c.place.kind, name, true)
		switch {
		case exists:
		case errclass.ClassOf(err) == errclass.Unknown:
			b.lost.Store(true)
		default:
			return 0, err
		}
		there, found, readErr := s.read(ctx, o, c.place)
		switch {
		case readErr != nil && exists:
			return 0, readErr
		case readErr != nil, !found && !exists:
			// What became of the request is still not known: the caller repeats the
			// call, and then the object is found or made.
			return 0, err
		case !found:
			continue // It was there a moment ago, and is gone.
		}
		mine, occupied, err := s.settle(ctx, o, b, c, there)
		if mine || occupied > 0 || err != nil {
			return occupied, err
		}
	}
	return 0, errclass.New(errclass.Retryable, errclass.AlreadyExists, "create", describe(o.Namespace, c.place.kind, name),
		"an object of that name appears again and again")
}

// settle says what an object is that has the name of c. It is mine if it is what
// we wanted to write, occupied if it is another batch's of this Transaction. If
// it was left by a predecessor, it is removed. Anything else is an error.
func (s *Store) settle(ctx context.Context, o Owner, b batch, c *chunk, there object) (mine bool, occupied int, err error) {
	ref, owned := transactionOf(there.meta)
	switch {
	case owned && ref.UID == o.UID && equal(there, b, c):
		return true, 0, nil
	case owned && ref.UID == o.UID:
		return false, lastOf(there.meta.Annotations[annotationBatch], c.place.number), nil
	case owned && ref.Name == o.Name:
		return false, 0, s.evict(ctx, o, Owner{o.Namespace, o.Name, ref.UID}, c.place)
	default:
		return false, 0, errclass.New(errclass.Terminal, errclass.AlreadyExists, "create",
			describe(o.Namespace, c.place.kind, there.meta.Name), "an object of that name exists and does not belong to this Transaction").
			WithHint("it was not touched; delete or rename it, or give the Transaction another name")
	}
}

// evict removes what a Transaction of the same name and another uid has left.
// That one is gone only if we are the one that lives: a controller that has slept
// through our own replacement would destroy the before-images of the successor.
// The object was read before the Transaction is read here, so if the
// Transaction is still us, the owner of the object came before us.
func (s *Store) evict(ctx context.Context, o, predecessor Owner, p place) error {
	op, name := "find the owner of what has the name of a before-image of", "Transaction "+o.Namespace+"/"+o.Name
	meta, err := s.objects.transaction(ctx, o.Namespace, o.Name)
	if err != nil {
		return errclass.Wrap(err, op, name, false)
	}
	if meta.UID != o.UID {
		return errclass.New(errclass.Retryable, errclass.StaleVersion, op, name, "it was deleted and created again")
	}
	if err := s.Sweep(ctx, predecessor, 1); err != nil {
		return err
	}
	// The sweep steps over the numbers of our own batch, whose first object we have written. What
	// the predecessor has at one of them is not found by it.
	return s.drop(ctx, predecessor, p, s.letGo)
}

// equal reports whether an object is what put would create. One whose finalizer
// is gone is not, since it may vanish at any time.
func equal(there object, b batch, c *chunk) bool {
	return there.immutable &&
		there.meta.Annotations[annotationBatch] == b.mark &&
		slices.Contains(there.meta.Finalizers, Finalizer) &&
		maps.Equal(there.data, c.data)
}

// read reads the object at a place, if it exists.
func (s *Store) read(ctx context.Context, o Owner, p place) (object, bool, error) {
	name := objectName(o.Name, p.number)
	there, err := target.Confirmed(func() (object, error) { return s.objects.get(ctx, o.Namespace, p.kind, name) })
	switch {
	case errclass.Is(err, errclass.NotFound):
		return object{}, false, nil
	case err != nil:
		return object{}, false, wrap(err, "get", o.Namespace, p.kind, name, false)
	default:
		return there, true, nil
	}
}

func newObject(o Owner, name string, b batch, c *chunk) runtime.Object {
	// blockOwnerDeletion stays unset. It would let a foreground deletion of the
	// Transaction wait for this object, which waits for Janus anyway; and where
	// OwnerReferencesPermissionEnforcement is on, setting it takes the right to
	// update the finalizers of Transactions.
	owner := api.OwnerReference(o.Name, o.UID)
	owner.Controller = ptr.To(true)
	meta := metav1.ObjectMeta{
		Namespace: o.Namespace,
		Name:      name,
		Labels:    Labels(o.Name),
		Annotations: map[string]string{
			api.TransactionKey: o.Name,
			annotationBatch:    b.mark,
		},
		Finalizers:      []string{Finalizer},
		OwnerReferences: []metav1.OwnerReference{owner},
	}
	if c.place.kind == configMaps {
		return &corev1.ConfigMap{ObjectMeta: meta, Immutable: ptr.To(true), Data: c.data}
	}
	data := make(map[string][]byte, len(c.data))
	for key, value := range c.data {
		data[key] = []byte(value)
	}
	return &corev1.Secret{ObjectMeta: meta, Immutable: ptr.To(true), Type: corev1.SecretTypeOpaque, Data: data}
}

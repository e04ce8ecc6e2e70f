package wiring

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/revision"
)

// Find finds the revision, or the revisions, that spec.undoOf names.
func (h *History) Find(ctx context.Context, t *api.Transaction) (api.Undoing, error) {
	undo := *t.Spec.UndoOf
	if undo.ToRevision != nil {
		return h.findSince(ctx, t, *undo.ToRevision)
	}
	number := ptr.Deref(undo.Revision, 0)
	if undo.Name != "" {
		named, err := h.transaction(ctx, types.NamespacedName{Namespace: t.Namespace, Name: undo.Name})
		switch {
		case err != nil:
			return api.Undoing{}, err
		case named == nil:
			return api.Undoing{}, errclass.New(errclass.Terminal, errclass.NotFound, "undo", "Transaction "+t.Namespace+"/"+undo.Name, "it does not exist")
		case named.Status.RevisionDigest == "":
			return api.Undoing{}, errclass.New(errclass.Terminal, errclass.NotRemembered, "undo", describe(named),
				"it is %s and is not remembered", named.Status.Phase).WithHint("only what has changes in effect and is remembered, by its revisionHistoryLimit or janusd's, can be undone")
		}
		number = named.Status.Revision
	}
	found, _, digest, err := h.read(ctx, t.Namespace, number)
	return api.Undoing{UndoneRevision: api.UndoneRevision{Name: found.Transaction.Name, UID: found.Transaction.UID, Revision: number, Digest: digest}}, err
}

// undone reads a revision that has been found to be undone, and the Transaction that it is of.
func (h *History) undone(ctx context.Context, namespace string, which api.UndoneRevision) (revision.Revision, *api.Transaction, error) {
	found, owner, digest, err := h.read(ctx, namespace, which.Revision)
	if err == nil && digest != which.Digest {
		return found, nil, h.forged(namespace, which.Revision)
	}
	return found, owner, err
}

// read reads a revision, and believes it if its Transaction says the same of it: others
// can make revisions, but not write the status of a Transaction.
func (h *History) read(ctx context.Context, namespace string, number int64) (found revision.Revision, owner *api.Transaction, digest string, err error) {
	found, err = h.revisions.Get(ctx, namespace, number)
	if errclass.Is(err, errclass.NotFound) {
		return found, nil, "", errclass.New(errclass.Terminal, errclass.NotRemembered, "undo", revision.Describe(namespace, number), "it does not exist, or not any more").
			WithHint("kubectl get controllerrevisions -l app.kubernetes.io/managed-by=janus lists those that can be undone")
	}
	if err != nil {
		return found, nil, "", err
	}
	digest, err = revision.Digest(found)
	if err != nil {
		return found, nil, "", err
	}
	owner, err = h.transaction(ctx, types.NamespacedName{Namespace: namespace, Name: found.Transaction.Name})
	if err != nil {
		return found, nil, "", err
	}
	if owner == nil || owner.UID != found.Transaction.UID || !plan.EndedInEffect(&owner.Status) ||
		owner.Status.Revision != number || owner.Status.RevisionDigest != digest {
		return found, nil, "", h.forged(namespace, number)
	}
	return found, owner, digest, nil
}

func (h *History) forged(namespace string, number int64) error {
	return errclass.New(errclass.Terminal, errclass.NotRemembered, "undo", revision.Describe(namespace, number),
		"it is not what its Transaction says of it: that has no changes in effect, is gone, or another client has made the revision").
		WithHint("nothing was done; find out who made it")
}

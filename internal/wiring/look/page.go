package look

import (
	"context"
	"math"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/internal/ui"
	"janus.io/janus/lockmgr"
	"janus.io/janus/revision"
)

var (
	_ ui.History = Revisions{}
	_ ui.Past    = Images{}
)

// LeaseOf names the Lease that locks an object, as namespace/name. Those of objects without a
// namespace are in that of janusd.
func LeaseOf(system string) func(target api.Target, resource string) string {
	return func(target api.Target, resource string) string {
		gvk := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind)
		key := lockmgr.Key{ID: objectid.ID{Group: gvk.Group, Resource: resource, Namespace: target.Namespace, Name: target.Name}, Kind: gvk.Kind}
		namespace := target.Namespace
		if namespace == "" {
			namespace = system
		}
		return namespace + "/" + key.LeaseName()
	}
}

// Revisions tells the page what a namespace remembers.
type Revisions struct{ Store *revision.Store }

// Revisions implements ui.History.
func (r Revisions) Revisions(ctx context.Context, namespace string) ([]ui.Revision, error) {
	entries, err := r.Store.List(ctx, namespace)
	if err != nil {
		return nil, err
	}
	out := make([]ui.Revision, len(entries))
	for i, e := range entries {
		out[i] = ui.Revision{Number: e.Number, Transaction: e.Owner.Name, UID: e.Owner.UID, Unchanged: e.Unchanged}
	}
	return out, nil
}

// Changes implements ui.Past.
func (i Images) Changes(t *api.Transaction) ui.Changes {
	return changes{i.Open(t, *t.Status.RollbackRef)}
}

type changes struct{ Past }

// Of implements ui.Changes.
func (c changes) Of(ctx context.Context, i int) (fields []api.FieldChange, note string, err error) {
	item := &c.txn.Status.Items[i]
	kind := item.Type
	if kind == "" && i < len(c.txn.Spec.Changes) {
		kind = c.txn.Spec.Changes[i].Type
	}
	found, note, err := c.Fields(ctx, revision.Item{
		Index: i, Name: item.Name, Type: kind, Target: item.Target, Before: item.Before, Confidential: item.Confidential,
	})
	fields, _ = plan.ChangesOf(found, math.MaxInt)
	return fields, note, err
}

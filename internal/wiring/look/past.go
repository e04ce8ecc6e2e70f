package look

import (
	"context"

	"go.uber.org/zap"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	merging "sigs.k8s.io/structured-merge-diff/v4/typed"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
)

// Images opens the before-images of Transactions.
type Images struct {
	client kubernetes.Interface
	types  *openapi.Types
}

// NewImages reads by client, the schemas of kinds too.
func NewImages(client kubernetes.Interface) Images {
	return Images{client, openapi.New(client.Discovery().OpenAPIV3(), clock.RealClock{}, zap.NewNop(), 0)}
}

// Past tells what a Transaction has changed.
type Past struct {
	txn    *api.Transaction
	images *snapshot.Reader
	types  *openapi.Types
}

// Open opens those of a Transaction, which are in the objects of ref.
func (i Images) Open(t *api.Transaction, ref api.RollbackRef) Past {
	owner := snapshot.Owner{Namespace: t.Namespace, Name: t.Name, UID: t.UID}
	return Past{txn: t, images: snapshot.NewStore(i.client, nil).Open(owner, ref), types: i.types}
}

// Fields lists what one change has made of the fields of its target, or notes why there are none.
func (p Past) Fields(ctx context.Context, of revision.Item) (fields []errclass.Field, note string, err error) {
	if of.Before == nil {
		return nil, "it was not there", nil
	}
	record, err := p.images.Load(ctx, *of.Before)
	switch {
	case err != nil:
		return nil, "", err
	case record.Before == nil && record.After == nil && of.Type == api.Delete:
		return nil, "it was not there", nil
	case record.After == nil && of.Type != api.Delete:
		return nil, "what the change made of it was not known before it was made; spec.changes of the Transaction has its content", nil
	}
	change := mutate.Change{
		Ref: record.Target, Content: record.Content,
		Sensitive:   record.Confidential || of.Confidential || record.Target.GVK.GroupKind() == target.SecretKind,
		Environment: mutate.Environment{Type: func(ctx context.Context) (merging.ParseableType, error) { return p.types.Of(ctx, record.Target.GVK) }},
	}
	if change.Content == nil {
		change.Content = p.content(of)
	}
	fields, err = change.Differences(ctx, record.Before, record.After)
	if err == nil && len(fields) == 0 {
		note = "no value has changed"
	}
	return fields, note, err
}

// content is that of a change, if the Transaction has it: it tells what the change has set, of
// what the API server sets by itself otherwise.
func (p Past) content(of revision.Item) map[string]any {
	if of.Index >= len(p.txn.Spec.Changes) || p.txn.Spec.Changes[of.Index].Content == nil {
		return nil
	}
	var object map[string]any
	if err := utiljson.Unmarshal(p.txn.Spec.Changes[of.Index].Content.Raw, &object); err != nil {
		return nil
	}
	return object
}

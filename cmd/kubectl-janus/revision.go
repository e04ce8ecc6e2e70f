package main

import (
	"context"
	"fmt"
	"math"

	"go.uber.org/zap"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	merging "sigs.k8s.io/structured-merge-diff/v4/typed"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
)

// rememberedAs shows the revision of a Transaction. A number that was given must be that of it.
func (s *session) rememberedAs(ctx context.Context, namespace, name string, number int64, out output) error {
	t, err := s.read(ctx, name)
	switch {
	case err != nil:
		return err
	case t.Status.RevisionDigest == "":
		return fmt.Errorf("transaction %s/%s is %s and is not remembered: kubectl janus history lists those that are", namespace, t.Name, phaseOf(t))
	case number != 0 && number != t.Status.Revision:
		return fmt.Errorf("revision %d of namespace %s is not that of Transaction %s, which has revision %d", number, namespace, t.Name, t.Status.Revision)
	}
	return s.remembered(ctx, namespace, t.Status.Revision, out)
}

// remembered shows one revision.
func (s *session) remembered(ctx context.Context, namespace string, number int64, out output) error {
	client, err := s.kube()
	if err != nil {
		return err
	}
	r, err := revision.NewStore(client).Get(ctx, namespace, number)
	if errclass.Is(err, errclass.NotFound) {
		return noRevision(namespace, number)
	}
	if err != nil {
		return unread(fmt.Sprintf("read revision %d of namespace %s", number, namespace), err)
	}
	t, err := s.read(ctx, r.Transaction.Name)
	if err != nil {
		return err
	}
	digest, err := revision.Digest(r)
	if err != nil {
		return err
	}
	if t.UID != r.Transaction.UID || t.Status.Revision != number || t.Status.RevisionDigest != digest {
		return fmt.Errorf("revision %d of namespace %s is not what Transaction %s says of it: another client has made it, and it cannot be undone", number, namespace, t.Name)
	}
	past := newPast(client, t, r)
	if !out.text() {
		return s.printData(out, past.all(ctx, number, r))
	}
	s.print("Revision %d: Transaction %s/%s, as ServiceAccount %s", number, namespace, r.Transaction.Name, r.ServiceAccount)
	for _, of := range r.Items {
		s.print("  %s %s %s", of.Name, of.Type, of.Target.String())
		past.print(ctx, s, of)
	}
	s.print("To undo it: kubectl janus undo --revision %d --service-account %s -n %s", number, r.ServiceAccount, namespace)
	return nil
}

func noRevision(namespace string, number int64) error {
	return fmt.Errorf("namespace %s has no revision %d: kubectl janus history -n %s lists those that it has", namespace, number, namespace)
}

// hasRevision refuses a number that no revision has. That it cannot be read is for janusd to judge.
func (s *session) hasRevision(ctx context.Context, namespace string, number int64) error {
	client, err := s.kube()
	if err != nil {
		return err
	}
	if _, err := revision.NewStore(client).Get(ctx, namespace, number); errclass.Is(err, errclass.NotFound) {
		return noRevision(namespace, number)
	}
	return nil
}

// past tells what a committed Transaction has changed.
type past struct {
	txn    *api.Transaction
	images *snapshot.Reader
	types  *openapi.Types
}

func newPast(client kubernetes.Interface, t *api.Transaction, r revision.Revision) past {
	owner := snapshot.Owner{Namespace: t.Namespace, Name: t.Name, UID: t.UID}
	return past{
		txn: t, images: snapshot.NewStore(client, nil).Open(owner, r.Images),
		types: openapi.New(client.Discovery().OpenAPIV3(), clock.RealClock{}, zap.NewNop()),
	}
}

// changed is a revision with what it has changed.
type changed struct {
	Revision       int64         `json:"revision"`
	Transaction    string        `json:"transaction"`
	ServiceAccount string        `json:"serviceAccount"`
	Items          []itemChanged `json:"items"`
}

// itemChanged is what one change has done.
type itemChanged struct {
	Name      string         `json:"name"`
	Type      api.ChangeType `json:"type"`
	Target    api.Target     `json:"target"`
	Unchanged bool           `json:"unchanged,omitempty"`
	Note      string         `json:"note,omitempty"`
	// Unread says why Fields are not known.
	Unread string            `json:"unread,omitempty"`
	Fields []api.FieldChange `json:"fields"`
}

// all is what all changes have done.
func (p past) all(ctx context.Context, number int64, r revision.Revision) changed {
	out := changed{number, r.Transaction.Name, r.ServiceAccount, []itemChanged{}}
	for _, of := range r.Items {
		one := itemChanged{Name: of.Name, Type: of.Type, Target: of.Target, Fields: []api.FieldChange{}}
		fields, note, err := p.fields(ctx, of)
		if one.Note = note; err != nil {
			one.Unread = errclass.Message(err)
		}
		if of.Index < len(p.txn.Status.Items) {
			one.Unchanged = p.txn.Status.Items[of.Index].Unchanged
		}
		if list, _ := plan.ChangesOf(fields, math.MaxInt); list != nil {
			one.Fields = list
		}
		out.Items = append(out.Items, one)
	}
	return out
}

// print prints what one change has done. What may not be read is said, and the rest is shown.
func (p past) print(ctx context.Context, s *session, of revision.Item) {
	fields, note, err := p.fields(ctx, of)
	if err != nil {
		s.print("    what it changed cannot be shown: %s", errclass.Message(err))
		return
	}
	item := api.Item{}
	if of.Index < len(p.txn.Status.Items) {
		item = p.txn.Status.Items[of.Index]
	}
	switch {
	case item.Unchanged:
		s.print("    %s", unwritten)
	case note != "":
		s.print("    %s", note)
	}
	item.Plan = &api.Plan{}
	item.Plan.Fields, item.Plan.More = plan.ChangesOf(fields, math.MaxInt)
	printFields(s.Out, "    ", item.Plan.Fields)
	printRemarks(s.Out, &item)
}

// fields lists what one change has made of the fields of its target, or notes why there are none.
func (p past) fields(ctx context.Context, of revision.Item) (fields []errclass.Field, note string, err error) {
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
func (p past) content(of revision.Item) map[string]any {
	if of.Index >= len(p.txn.Spec.Changes) || p.txn.Spec.Changes[of.Index].Content == nil {
		return nil
	}
	var object map[string]any
	if err := utiljson.Unmarshal(p.txn.Spec.Changes[of.Index].Content.Raw, &object); err != nil {
		return nil
	}
	return object
}

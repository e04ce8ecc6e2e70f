package main

import (
	"context"
	"fmt"
	"math"

	"k8s.io/client-go/kubernetes"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/wiring/look"
	"janus.io/janus/revision"
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

// revisionOf reads a revision, and refuses a number that none has. That it cannot be read is for
// janusd to judge: it is empty then.
func (s *session) revisionOf(ctx context.Context, namespace string, number int64) (revision.Revision, error) {
	client, err := s.kube()
	if err != nil {
		return revision.Revision{}, err
	}
	r, err := revision.NewStore(client).Get(ctx, namespace, number)
	if errclass.Is(err, errclass.NotFound) {
		return r, noRevision(namespace, number)
	}
	return r, nil
}

// past tells what a committed Transaction has changed.
type past struct {
	txn *api.Transaction
	look.Past
}

func newPast(client kubernetes.Interface, t *api.Transaction, r revision.Revision) past {
	return past{t, look.NewImages(client).Open(t, r.Images)}
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
		fields, note, err := p.Fields(ctx, of)
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
	fields, note, err := p.Fields(ctx, of)
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
	printRemarks(s.Out, &item, releasedTo(p.txn, of.Index))
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http/httptrace"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/storage/names"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/content"
	"janus.io/janus/internal/errclass"
)

// manager is the field manager of what the plugin writes.
const manager = "kubectl-janus"

// create creates a Transaction from its content and returns what was stored.
//
// A name that is to be made up is made up here, as the API server would do it: if the reply
// is lost, it is known what to look for, and a request that is sent again makes no second
// Transaction.
//
// What does not fit into it is stored beside it.
func (s *session) create(ctx context.Context, d draft) (*api.Transaction, error) {
	u := d.DeepCopy()
	client, err := s.transactions(u.GetNamespace())
	if err != nil {
		return nil, err
	}
	madeUp := u.GetName() == "" && u.GetGenerateName() != ""
	if madeUp {
		u.SetName(names.SimpleNameGenerator.GenerateName(u.GetGenerateName()))
		// With it the API server would not say that the name is taken, but that it could
		// not make one up.
		u.SetGenerateName("")
	}
	if name := u.GetName(); name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Errorf("transaction %s: a name has at most 253 lower-case letters, digits, - and ., with a letter or digit first and last", name)
	}
	objects, err := outsourced(draft{Unstructured: u, hidden: d.hidden, secret: d.secret})
	if err != nil {
		return nil, err
	}
	var sent atomic.Bool
	watched := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	made, err := client.Create(watched, u, metav1.CreateOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		t, err := typed(made)
		if err != nil {
			return nil, err
		}
		return t, s.store(ctx, t, objects)
	}
	err = explain("create Transaction "+u.GetNamespace()+"/"+u.GetName(), err)
	if sent.Load() && errclass.ClassOf(err) == errclass.Unknown || madeUp && apierrors.IsAlreadyExists(err) {
		return nil, &doubtError{namespace: u.GetNamespace(), name: u.GetName(), err: err}
	}
	return nil, err
}

// doubtError is the error of a creation of which it is not known what came of it: the reply
// was lost, or the request was sent again and found what it had made before.
type doubtError struct {
	namespace, name string
	err             error
}

func (e *doubtError) Error() string {
	return fmt.Sprintf("%v; it may have been created all the same, see: kubectl janus get %s --namespace %s", e.err, e.name, e.namespace)
}

func (e *doubtError) Unwrap() error { return e.err }

// outsourced takes out of a Transaction what is to be stored beside it, and refuses one that
// could not be stored all the same: the API server would say so in words of its store, or of
// HTTP.
func outsourced(d draft) ([]content.Object, error) {
	t, err := typed(d.DeepCopy())
	if err != nil {
		return nil, nil //nolint:nilerr // the API server says what is wrong with it
	}
	objects, err := d.contents(t)
	if err != nil {
		return nil, err
	}
	return objects, tooLarge(d.Unstructured)
}

// tooLarge refuses a Transaction that could not be stored as it is.
func tooLarge(u *unstructured.Unstructured) error {
	t, err := typed(u.DeepCopy())
	if err != nil {
		return nil //nolint:nilerr // the API server says what is wrong with it
	}
	name := "Transaction " + t.Namespace + "/" + cmp.Or(t.Name, t.GenerateName)
	if n := len(t.Spec.Changes); n > plan.MaxChanges {
		return fmt.Errorf("%s would have %d changes, and may have %d: split it into several", name, n, plan.MaxChanges)
	}
	size, err := expectedBytes(t)
	if err != nil || size <= plan.MaxBytes {
		return err
	}
	return fmt.Errorf("%s would take %s with its status, and may take %s: create it by kubectl janus run, which stores the contents beside it, or split it; the largest of its %d changes is %s", name,
		megabytes(size), megabytes(plan.MaxBytes), len(t.Spec.Changes), largest(t.Spec.Changes))
}

// expectedBytes is how large a Transaction will become with its status.
func expectedBytes(t *api.Transaction) (int, error) {
	t = t.DeepCopy()
	t.Status.Items = nil
	for i, c := range t.Spec.Changes {
		item := api.Item{Name: plan.ChangeName(i, c), Target: c.Target}
		plan.SetItemState(&item, api.ItemPending)
		t.Status.Items = append(t.Status.Items, item)
	}
	return plan.StoredBytes(t)
}

func megabytes(bytes int) string { return fmt.Sprintf("%.1f MB", math.Ceil(float64(bytes)/1e5)/10) }

// largest names the change with the most content, with its size.
func largest(changes []api.Change) string {
	size := func(c api.Change) int {
		if c.Content == nil {
			return 0
		}
		return len(c.Content.Raw)
	}
	most := slices.MaxFunc(changes, func(a, b api.Change) int { return size(a) - size(b) })
	return fmt.Sprintf("%s (%s)", most.Target.String(), megabytes(size(most)))
}

package main

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/storage/names"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/fault"
)

// manager is the field manager of what the plugin writes.
const manager = "kubectl-janus"

// create creates a Transaction from its content and gives what was stored.
//
// A name that is to be made up is made up here, as the API server would do it: if the reply
// is lost, it is known what to look for, and a request that is sent again makes no second
// Transaction.
func (s *session) create(ctx context.Context, u *unstructured.Unstructured) (*api.Transaction, error) {
	client, err := s.transactions(u.GetNamespace())
	if err != nil {
		return nil, err
	}
	madeUp := u.GetName() == "" && u.GetGenerateName() != ""
	if madeUp {
		u = u.DeepCopy()
		u.SetName(names.SimpleNameGenerator.GenerateName(u.GetGenerateName()))
		// With it the API server would not say that the name is taken, but that it could
		// not make one up.
		u.SetGenerateName("")
	}
	var sent atomic.Bool
	watched := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	made, err := client.Create(watched, u, metav1.CreateOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		return typed(made)
	}
	err = explain("create Transaction "+u.GetNamespace()+"/"+u.GetName(), err)
	if sent.Load() && fault.ClassOf(err) == fault.Unknown || madeUp && apierrors.IsAlreadyExists(err) {
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

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "janus.io/janus/api/v1alpha1"
)

// refusals is how often in a row a request is refused until that is believed. An API server
// that has just started knows no roles yet.
const refusals = 3

// troubles hears what comes of the requests by which a Transaction is followed. A wait ends
// if they are refused; any other trouble is said, and passes or the time runs out.
type troubles struct {
	*session
	t      *api.Transaction
	refuse context.CancelCauseFunc

	mu      sync.Mutex
	refused map[string]int // by the verb
	said    string
}

func (x *troubles) heard(verb string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err == nil:
		delete(x.refused, verb)
	case apierrors.IsForbidden(err):
		if x.refused == nil {
			x.refused = map[string]int{}
		}
		if x.refused[verb]++; x.refused[verb] == refusals {
			x.refuse(explain(fmt.Sprintf("wait for Transaction %s/%s, which continues by itself", x.t.Namespace, x.t.Name), err))
		}
	case passes(err), err.Error() == x.said:
	default:
		x.said = err.Error()
		x.say("Transaction %s/%s cannot be watched for now, which is tried again: %v", x.t.Namespace, x.t.Name, err)
	}
}

// passes reports whether an error is how requests end that nothing is wrong with.
func passes(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

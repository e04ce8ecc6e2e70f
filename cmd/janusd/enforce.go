package main

import (
	"context"
	"sync"

	"go.uber.org/zap"
	authzv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"

	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/settings"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/internal/wiring/enforced"
)

// leases are those of the locks: one for each target, or one for each namespace.
func (c *clients) leases(o options) coordinationv1client.LeasesGetter {
	if o.locks == settings.LeaseOfNamespace {
		return leasetable.New(c.own.CoordinationV1(), o.namespace)
	}
	return c.own.CoordinationV1()
}

// enforced puts the tables around the locks.
func (c *clients) enforced(locks engine.Locks) engine.Locks {
	return enforced.Around(locks, enforced.NewTables(c.dynamic), wiring.NewJournal(c.dynamic), clock.RealClock{}, plan.DefaultLateness)
}

// enforceLocks fails if locks are to be enforced and cannot be. It sweeps the tables at once,
// and goes on to do so until it is stopped, whether or not this replica leads.
func (c *clients) enforceLocks(ctx context.Context, o options, log *zap.Logger) (stop func(), err error) {
	if !o.enforce {
		return func() {}, nil
	}
	tables := enforced.NewTables(c.dynamic)
	if err := enforced.Check(ctx, tables, c.may); err != nil {
		return nil, err
	}
	sweeper := enforced.NewSweeper(tables, wiring.NewJournal(c.dynamic), clock.RealClock{}, log)
	if err := sweeper.Sweep(ctx); err != nil {
		log.Warn("sweep the tables of locks", zap.Error(err)) // It is done again.
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { sweeper.Run(ctx) })
	return func() { cancel(); done.Wait() }, nil
}

// may asks what janusd itself may do in any namespace.
func (c *clients) may(ctx context.Context, group, resource, subresource, verb, name string) (bool, error) {
	answer, err := c.own.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authzv1.SelfSubjectAccessReview{
		Spec: authzv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authzv1.ResourceAttributes{
			Group: group, Version: "*", Resource: resource, Subresource: subresource, Verb: verb, Name: name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"janus.io/janus/controller"
)

// leaderLease is the name of the Lease that the replicas contend for.
const leaderLease = "janusd-leader"

// lead runs the controller while this replica holds the leader Lease. A replica
// that is told to stop finishes its steps first and gives the Lease back after
// that, so that the next one starts at once and alone. When the Lease is lost the
// steps in hand are safe all the same, since every write carries a precondition;
// janusd then ends, and a new process starts clean.
func lead(ctx context.Context, c *clients, o options, ctl *controller.Controller, log *zap.Logger) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find a name for this replica: %w", err)
	}
	// The host alone would not do: with host networking two replicas share it.
	identity := host + "_" + string(uuid.NewUUID())
	log = log.With(zap.String("identity", identity), zap.String("lease", o.namespace+"/"+leaderLease))
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, o.namespace, leaderLease, c.own.CoreV1(), c.own.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	t := term{controller: ctl, log: log, result: make(chan error, 1)}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: leaderLease, Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: o.leaseTime, RenewDeadline: o.leaseTime * 2 / 3, RetryPeriod: o.leaseTime / 6,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { t.serve(ctx, leading) },
			OnStoppedLeading: func() { log.Info("not leading any more") },
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	t.stop = stop
	defer context.AfterFunc(ctx, func() {
		if !t.begun.Load() {
			stop()
		}
	})()
	log.Info("waiting to lead")
	elector.Run(electing)
	return t.end(ctx, o)
}

// term is the time in which this replica leads.
type term struct {
	controller *controller.Controller
	log        *zap.Logger
	begun      atomic.Bool
	stop       func() // stops the election, which gives the Lease back
	result     chan error
}

// serve runs the controller until janusd is told to stop or the Lease is lost, and
// ends the election when the controller has finished.
func (t *term) serve(stopping, leading context.Context) {
	t.begun.Store(true)
	t.log.Info("leading")
	ctx, cancel := context.WithCancel(leading)
	defer cancel()
	defer context.AfterFunc(stopping, cancel)()
	t.result <- t.controller.Run(ctx)
	t.stop()
}

// end waits for the steps in hand and says whether the term ended as it should.
func (t *term) end(stopping context.Context, o options) error {
	if t.begun.Load() {
		if err := <-t.result; err != nil {
			return err
		}
	}
	if stopping.Err() == nil {
		return fmt.Errorf("the leader Lease %s/%s was lost", o.namespace, leaderLease)
	}
	return nil
}

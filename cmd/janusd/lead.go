package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"janus.io/janus/internal/shard"
)

// leaderLease is the name of the Lease that the replicas contend for when the
// Transactions are not divided.
const leaderLease = "janusd-leader"

// group tells the replicas that run the Transactions of one selector from those of another, which
// may be in the same namespace. It is empty without a selector.
func (o options) group() string {
	if o.selector == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(o.selector.String()))
	return hex.EncodeToString(sum[:4])
}

// inGroup is the name of an object that the replicas of a group share.
func (o options) inGroup(name string) string {
	if group := o.group(); group != "" {
		return name + "-" + group
	}
	return name
}

// identify makes up a name for this replica.
func identify() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("find a name for this replica: %w", err)
	}
	// The host alone would not do: with host networking two replicas share it.
	return host + "_" + string(uuid.NewUUID()), nil
}

// lead runs the controller while this replica holds the leader Lease. A replica
// that is told to stop finishes its steps first and releases the Lease after
// that, so that the next one starts at once and alone. When the Lease is lost the
// steps in flight are safe all the same, since every write carries a precondition;
// janusd then ends, and a new process starts clean.
func lead(ctx context.Context, c *clients, o options, ctl worker, log *zap.Logger) error {
	identity, err := identify()
	if err != nil {
		return err
	}
	lease := o.inGroup(leaderLease)
	log = log.With(zap.String("identity", identity), zap.String("lease", o.namespace+"/"+lease))
	election, err := shard.NewElection(shard.Contest{
		Client: c.election, Namespace: o.namespace, Lease: lease, Identity: identity, Duration: o.leaseTime, Log: log,
	})
	if err != nil {
		return err
	}
	log.Info("waiting to lead")
	var failure error
	err = election.Hold(ctx, func(leading context.Context) {
		log.Info("leading")
		failure = ctl.Work(leading)
		log.Info("not leading any more")
	})
	switch {
	case err != nil || failure != nil:
		return errors.Join(err, failure)
	case ctx.Err() == nil:
		return fmt.Errorf("the leader Lease %s/%s was lost", o.namespace, lease)
	}
	return nil
}

// share runs the Transactions of the shards that fall to this replica. When the Lease of
// one is lost, or it falls to another, janusd goes on with the others.
func share(ctx context.Context, c *clients, o options, ctl worker, log *zap.Logger) error {
	identity, err := identify()
	if err != nil {
		return err
	}
	replica, err := shard.New(shard.Options{
		Client: c.election, Namespace: o.namespace, Group: o.group(), Identity: identity, Shards: o.shards, Duration: o.leaseTime,
		Serve: ctl.Serve, Clock: clock.RealClock{}, Log: log.Named("shards").With(zap.String("identity", identity)),
	})
	if err != nil {
		return err
	}
	log.Info("sharing the work", zap.String("identity", identity), zap.Int("shards", o.shards), zap.Duration("leaseDuration", o.leaseTime))
	var sharing sync.WaitGroup
	sharing.Go(func() { replica.Run(ctx) })
	defer sharing.Wait()
	return ctl.Controller.Work(ctx)
}

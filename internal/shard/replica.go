package shard

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// Options say how a replica takes part.
type Options struct {
	Client kubernetes.Interface
	// Namespace is where the Leases are.
	Namespace string
	// Group, if it is not empty, tells these replicas from others whose Leases are there too.
	Group string
	// Identity is who the replica is. No two processes may have the same.
	Identity string
	// Shards is into how many the Transactions are divided.
	Shards int
	// Duration is for how long a replica that has stopped renewing keeps what it has.
	Duration time.Duration
	// Serve runs the Transactions of a shard until ctx is done, and returns when it has
	// finished what was in flight.
	Serve func(ctx context.Context, shard int)
	Clock clock.WithTicker
	Log   *zap.Logger
}

// Replica is one of those that divide the shards between them.
type Replica struct {
	Options
	elections []*Election // by shard
	seen      observedRecords
	own       *coordinationv1.Lease // by which the others see this one
	waiting   bool                  // for those who divide into another number of shards

	terms map[int]context.CancelFunc // the shards that it holds or contends for
	ended chan int
	all   sync.WaitGroup
}

// New makes a Replica that has not begun.
func New(o Options) (*Replica, error) {
	r := &Replica{Options: o, seen: observedRecords{}, terms: map[int]context.CancelFunc{}, ended: make(chan int, o.Shards)}
	for number := range o.Shards {
		election, err := NewElection(Contest{
			Client: o.Client, Namespace: o.Namespace, Lease: r.leaseOf(number), Labels: r.labelsOf(componentShard),
			Identity: o.Identity, Duration: o.Duration, Log: o.Log,
		})
		if err != nil {
			return nil, err
		}
		r.elections = append(r.elections, election)
	}
	return r, nil
}

// leaseOf is the name of the Lease of a shard.
func (r *Replica) leaseOf(number int) string {
	if r.Group != "" {
		return "janusd-" + r.Group + "-shard-" + strconv.Itoa(number)
	}
	return "janusd-shard-" + strconv.Itoa(number)
}

// Run takes part until ctx is done. It releases every shard, each when what was in flight
// of it has been finished, and returns.
func (r *Replica) Run(ctx context.Context) {
	ticker := r.Clock.NewTicker(r.Duration / 6)
	defer ticker.Stop()
	for r.turn(ctx); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-ticker.C():
			r.turn(ctx)
		case number := <-r.ended:
			delete(r.terms, number)
		}
	}
	// The others see at once that this one goes, and are there when it releases a shard.
	r.leave(context.WithoutCancel(ctx))
	r.all.Wait()
}

// turn tells the others that this replica is alive, sees who else is, and takes and gives
// up shards. What it could not find out it does the next time.
func (r *Replica) turn(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, r.Duration*2/3)
	defer cancel()
	leases, err := r.meet(bounded)
	if err != nil {
		if ctx.Err() == nil {
			r.Log.Warn("reading the Leases of the other replicas failed; trying again", zap.Error(err))
		}
		return
	}
	wanted := r.wanted(r.alive(bounded, leases))
	for number, end := range r.terms {
		if !wanted[number] {
			end()
		}
	}
	for _, number := range slices.Sorted(maps.Keys(wanted)) {
		r.succeed(bounded, leases, number)
		r.contend(ctx, number)
	}
}

// wanted returns the shards that fall to this replica.
func (r *Replica) wanted(members []member) map[int]bool {
	wanted := map[int]bool{}
	inForce := inForce(members)
	waiting := len(inForce) > 0 && inForce[0].shards != r.Shards
	if waiting && !r.waiting {
		r.Log.Warn("other replicas divide the Transactions into another number of shards; this one runs none until they are gone: start all with the same --shards",
			zap.Int("shards", r.Shards), zap.Int("theirs", inForce[0].shards))
	}
	if r.waiting = waiting; waiting {
		return wanted
	}
	for number, name := range assign(inForce, r.Shards) {
		if name == r.name() {
			wanted[number] = true
		}
	}
	return wanted
}

// contend begins to contend for a shard, if it has not.
func (r *Replica) contend(ctx context.Context, number int) {
	if _, contends := r.terms[number]; contends {
		return
	}
	ctx, end := context.WithCancel(ctx)
	r.terms[number] = end
	r.all.Go(func() {
		defer func() { r.ended <- number }()
		defer end()
		if err := r.elections[number].Hold(ctx, func(ctx context.Context) { r.Serve(ctx, number) }); err != nil {
			r.Log.Error("contending for a shard failed", zap.Int("shard", number), zap.Error(err))
		}
	})
}

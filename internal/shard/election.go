package shard

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

// Contest is what the replicas contend for, and how.
type Contest struct {
	Client kubernetes.Interface
	// Namespace and Lease name the Lease.
	Namespace, Lease string
	// Labels are put on the Lease.
	Labels map[string]string
	// Identity is who contends. No two processes may have the same.
	Identity string
	// Duration is for how long one that has stopped renewing the Lease keeps it.
	Duration time.Duration
	Log      *zap.Logger
}

// renewal is how long a holder tries to renew a Lease before it takes it for lost.
func (c Contest) renewal() time.Duration { return c.Duration * 2 / 3 }

// retry is how often a holder renews, and how often the others look.
func (c Contest) retry() time.Duration { return c.Duration / 6 }

// Election holds a Lease by client-go's leader election, and releases it only when what
// was done under it has ended.
type Election struct {
	Contest
	lock    resourcelock.Interface
	elector *leaderelection.LeaderElector
	term    *term // of that elector
}

// NewElection makes an Election that has not begun.
func NewElection(c Contest) (*Election, error) {
	e := &Election{Contest: c}
	if err := e.prepare(); err != nil {
		return nil, fmt.Errorf("contend for the Lease %s/%s: %w", c.Namespace, c.Lease, err)
	}
	return e, nil
}

// Hold contends for the Lease until ctx is done, and calls serve when it holds it. The
// context of serve is done when ctx is, or the Lease is lost. When serve has returned the
// Lease is released, and Hold returns. It may be called again after that.
func (e *Election) Hold(ctx context.Context, serve func(ctx context.Context)) error {
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	e.term.run, e.term.stop = func(leading context.Context) {
		leading, cancel := context.WithCancel(leading)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		serve(leading)
	}, stop
	defer context.AfterFunc(ctx, e.term.close)()
	e.elector.Run(electing)
	e.term.wait()
	e.release(context.WithoutCancel(ctx))
	return e.prepare()
}

// prepare makes the elector of a term before that begins: client-go's metric then tells
// that the Lease is not held here. Of one that is released in order it would not.
func (e *Election) prepare() (err error) {
	e.term = &term{}
	e.lock, err = resourcelock.NewWithLabels(resourcelock.LeasesResourceLock, e.Namespace, e.Lease, e.Client.CoreV1(), e.Client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: e.Identity}, e.Labels)
	if err != nil {
		return err
	}
	// ReleaseOnCancel would release it as well when it could not be renewed in time: with
	// steps still in flight, and without a look whose it is by then.
	e.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: e.Lease, Lock: e.lock,
		LeaseDuration: e.Duration, RenewDeadline: e.renewal(), RetryPeriod: e.retry(),
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: e.term.serve, OnStoppedLeading: func() {}},
	})
	return err
}

// release releases the Lease if it is ours. A renewal that was under way when the election
// ended may land in between, so a conflict is no answer. If the release fails it expires.
func (e *Election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.renewal())
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := e.lock.Get(ctx)
		if err != nil || record.HolderIdentity != e.Identity {
			return err
		}
		record.HolderIdentity, record.LeaseDurationSeconds = "", 1
		return e.lock.Update(ctx, *record)
	})
	if err != nil {
		e.Log.Warn("releasing a Lease failed; if it is still held, it expires", zap.String("lease", e.Namespace+"/"+e.Lease), zap.Error(err))
	}
}

// term is what happens to one attempt to hold a Lease.
type term struct {
	run  func(ctx context.Context) // what is done while the Lease is held
	stop func()                    // ends the election

	mu      sync.Mutex
	closed  bool // run is not to be called any more
	running bool // run was called
	done    sync.WaitGroup
}

// serve is called by client-go when the Lease is held, in a goroutine that nobody waits
// for.
func (t *term) serve(leading context.Context) {
	if !t.open() {
		return
	}
	defer t.stop()
	defer t.done.Done()
	t.run(leading)
}

func (t *term) open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.running = true
	t.done.Add(1)
	return true
}

// close ends the election, unless run was called: then its end does.
func (t *term) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if !t.running {
		t.stop()
	}
}

// wait waits, after the election, until run has returned.
func (t *term) wait() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.done.Wait()
}

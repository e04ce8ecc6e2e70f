package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/controller/progress"
)

// Observer is told what has happened. It neither waits nor fails: nothing depends on it.
type Observer interface {
	// Happened is called after the API server has acknowledged a status, or once it is read. After
	// a restart what has happened last may be told again.
	Happened(p *api.PackageTransaction, what progress.Happening)
	// Looked is called after each look at all PackageTransactions; with nil when this process runs
	// them no more.
	Looked(at *Census)
}

// Census is how many PackageTransactions there are that have not ended.
type Census struct {
	Waiting, Running int
	// Oldest is when the first was created of those that wait; zero if none does.
	Oldest time.Time
}

// nobody is an Observer that is not there.
type nobody struct{}

func (nobody) Happened(*api.PackageTransaction, progress.Happening) {}
func (nobody) Looked(*Census)                                       {}

// sight is what this process has seen of a PackageTransaction, and told of.
type sight struct {
	status  *api.PackageTransactionStatus
	aborted bool
}

// observe tells what has happened to a PackageTransaction since this process saw it last. At the
// first sight that is what has happened last: the process before may have died before it was told.
func (c *Controller) observe(p *api.PackageTransaction) {
	last, known := c.seen[p.UID]
	if !known {
		last = sight{status: progress.Unseen(p)}
	}
	happened := progress.Happened(last.status, p)
	if !known {
		happened = happened[max(0, len(happened)-1):]
	}
	last.status = p.Status.DeepCopy()
	last.status.ProposedLockPackages = nil
	c.seen[p.UID] = last
	for _, what := range happened {
		c.Observer.Happened(p, what)
	}
}

// aborted tells once that a PackageTransaction was deleted before it had ended.
func (c *Controller) aborted(p *api.PackageTransaction, t *txn.Transaction) {
	if last, known := c.seen[p.UID]; known && p.Status.CompletionTime == nil && !last.aborted {
		last.aborted = true
		c.seen[p.UID] = last
		c.Observer.Happened(p, progress.Aborted(t))
	}
}

// looked tells how many there are, and forgets those that are gone.
func (c *Controller) looked(all []*api.PackageTransaction, holder *api.PackageTransaction) {
	var census Census
	there := map[types.UID]bool{}
	if holder != nil {
		there[holder.UID] = true
		if c.runs(holder) && holder.Status.CompletionTime == nil {
			census.Running = 1
		}
	}
	for _, p := range all {
		if there[p.UID] {
			continue
		}
		there[p.UID] = true
		if p.Status.CompletionTime == nil && p.DeletionTimestamp == nil {
			if census.Waiting++; census.Waiting == 1 {
				census.Oldest = p.CreationTimestamp.Time // They are sorted by age.
			}
		}
	}
	for uid := range c.seen {
		if !there[uid] {
			delete(c.seen, uid)
		}
	}
	c.Observer.Looked(&census)
}

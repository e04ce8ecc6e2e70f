package controller

import (
	"context"
	"sync"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"janus.io/janus/internal/shard"
)

// heldShards are the shards whose Transactions this process runs.
type heldShards struct {
	mu   sync.Mutex
	held map[int]*heldShard
}

// heldShard is the time from when a shard is taken until it is released.
type heldShard struct {
	running sync.WaitGroup

	mu    sync.Mutex
	over  bool
	turns map[*context.CancelFunc]struct{}
}

func newHeldShards() *heldShards { return &heldShards{held: map[int]*heldShard{}} }

// begin notes that the Transactions of a shard are to be run.
func (t *heldShards) begin(shard int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[shard] = &heldShard{turns: map[*context.CancelFunc]struct{}{}}
}

// end notes that no more of them are to be run, makes those that run end after the step
// in flight, and waits until they have. Once the shard is not counted any more no step is
// begun.
func (t *heldShards) end(shard int) {
	t.mu.Lock()
	ended := t.held[shard]
	ended.end()
	delete(t.held, shard)
	t.mu.Unlock()
	ended.running.Wait()
}

// end ends the turns in this term.
func (t *heldShard) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	for cancel := range t.turns {
		(*cancel)()
	}
}

// ends has the end of the term cancel a turn, until that is forgotten.
func (t *heldShard) ends(cancel context.CancelFunc) (forget func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		cancel()
	}
	t.turns[&cancel] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.turns, &cancel)
	}
}

// enter returns the term of a shard to a caller that runs one of its Transactions, and says
// when that has ended; nil if they are not to be run here.
func (t *heldShards) enter(shard int) *heldShard {
	t.mu.Lock()
	defer t.mu.Unlock()
	entered := t.held[shard]
	if entered != nil {
		entered.running.Add(1)
	}
	return entered
}

func (t *heldShards) holds(shard int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[shard] != nil
}

func (t *heldShards) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held)
}

func (t *heldShard) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// Serve runs the Transactions of a shard until ctx is done. It finishes the steps in flight
// and returns: from then on another process may run them. It is for a Controller with
// Options.Shards, beside Run, and not to be called for a shard that is being served.
func (c *Controller) Serve(ctx context.Context, number int) {
	if !cache.WaitForCacheSync(ctx.Done(), c.Synced) {
		return
	}
	log := c.log.With(zap.Int("shard", number), zap.Int("shards", c.options.Shards))
	c.held.begin(number)
	log.Info("running the Transactions of a shard")
	c.enqueueKnown()
	<-ctx.Done()
	log.Info("releasing a shard: the steps in flight are finished first")
	c.held.end(number)
	c.forget(func(name types.NamespacedName) bool { return c.shardOf(name) == number })
	log.Info("released a shard")
}

// Shards is how many shards this process runs the Transactions of.
func (c *Controller) Shards() int { return c.held.count() }

func (c *Controller) shardOf(name types.NamespacedName) int { return shard.Of(name, c.options.Shards) }

// ours reports whether this process runs a Transaction.
func (c *Controller) ours(name types.NamespacedName) bool { return c.held.holds(c.shardOf(name)) }

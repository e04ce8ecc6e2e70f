package testcluster

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the cluster of the test binary. A test binary is one package's, and
// go test offers no other way from TestMain to a test.
var shared holder

// holder starts a cluster when it is first asked for.
type holder struct {
	mu      sync.Mutex
	set     bool
	started bool
	options Options
	cluster *Cluster
	err     error
}

// Main runs the tests of a package and returns the status to exit with. A test
// gets the cluster that the options describe from Shared: the one that OfferVariable
// names if it has all of that, else one that is started for the first that asks, and
// stopped after the last. A cluster that ends by itself
// makes the run fail, and so does what Options.Judge finds.
func Main(m *testing.M, options Options) int {
	shared.configure(options)
	status := m.Run()
	if err := errors.Join(shared.judge(), shared.stop()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "testcluster:", err)
		if status == 0 {
			status = 1
		}
	}
	return status
}

// Shared returns the cluster of the package. It fails the test, and with it
// every other test that asks, if there is none.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	cluster, err := shared.get()
	if err != nil {
		t.Fatalf("the test needs a cluster: %v", err)
	}
	return cluster
}

func (h *holder) configure(options Options) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set, h.options = true, options
}

// get starts the cluster, or returns the one that runs, or the first failure.
func (h *holder) get() (*Cluster, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.set {
		return nil, fmt.Errorf("TestMain does not call testcluster.Main")
	}
	if !h.started {
		h.started = true
		if h.cluster, h.err = accept(h.options); h.cluster == nil && h.err == nil {
			h.cluster, h.err = Start(h.options)
		}
	}
	if h.err != nil {
		return nil, h.err
	}
	return h.cluster, h.cluster.Err()
}

// judge has the requests of all tests looked at, if there is a judge.
func (h *holder) judge() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cluster == nil || h.options.Judge == nil {
		return nil
	}
	events, err := h.cluster.auditOwn()
	if err != nil {
		return err
	}
	return h.options.Judge(events)
}

func (h *holder) stop() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cluster == nil {
		return nil
	}
	return h.cluster.Stop()
}

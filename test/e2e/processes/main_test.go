// Package processes kills, stops and wakes real processes while Transactions run:
// janusd, alone and as replicas with leader election, the API server and etcd. An
// administrator of its own judges what is there afterwards.
//
// # What is held against the guarantees
//
// Every test builds a world: a namespace with a stream of Transactions, some of
// which are refused while they commit, a foreign writer that writes to the targets
// all the time, and watches that see every version of every Transaction, target and
// Lease from the start. When the faults are over, and every Transaction has ended,
// judge.go's functions read what the watches saw and what is there:
//
//   - a target goes through the states that the changes make of it, forward once
//     and, unless the Transaction commits, back once, to exactly what it was;
//   - no acknowledged write of the foreign writer is missing that no change was
//     conditioned on having seen;
//   - phases and items move forward only, and checkpoints are counted without gap;
//   - no Lease changes its holder without having expired or been given back;
//   - no Lease, finalizer or before-image is left but those kept on purpose;
//   - every request to a target was made as the Transaction's ServiceAccount;
//   - the values of Secrets are nowhere but in Secrets.
//
// Which phase a Transaction ends in depends on when the faults happen and is not
// prescribed. Time decides nothing, but for generous bounds on waiting.
//
// # Long form
//
//	go test ./test/e2e/processes -count=1 -timeout=60m -parallel=4 -kills=300 -v
//
// The seed that each test prints repeats its choices with -seed, not the moments in
// which the processes meet them.
package processes

import (
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

var (
	kills = flag.Int("kills", 12, "how often janusd is killed in the test of that; the other tests do a part of it")
	seed  = flag.Uint64("seed", 0, "seed of what the tests choose; 0 takes one from the clock")
)

// ofKills is a share of the kills, and at least so many.
func ofKills(share, least int) int { return max(*kills/share, least) }

func TestMain(m *testing.M) {
	flag.Parse()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	status := testcluster.Main(m, options())
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(status)
}

// options are those of all clusters of this package.
func options() testcluster.Options {
	return testcluster.Options{ControllerManager: true, Audit: true, Alone: true, CRDs: filepath.Join(harness.Root(), "deploy", "crd")}
}

var built struct {
	once sync.Once
	dir  string
	err  error
}

// binary returns the path of janusd. It is built once, as it is shipped: the race
// detector would make it slow, and it is a process of its own.
func binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "janusd-"); built.err != nil {
			return
		}
		_, built.err = harness.BuildJanusdIn(built.dir)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "janusd")
}

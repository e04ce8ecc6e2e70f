package mutate_test

import (
	"flag"
	"os"
	"testing"

	"janus.io/janus/test/testcluster"
)

// update rewrites the golden files instead of comparing with them.
var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	flag.Parse()
	// Alone: quotas and the garbage collector stand still whenever others make or delete a CRD.
	os.Exit(testcluster.Main(m, testcluster.Options{ControllerManager: true, Alone: true}))
}

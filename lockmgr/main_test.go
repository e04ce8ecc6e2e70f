package lockmgr

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"janus.io/janus/internal/testcluster"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// withCluster runs the tests with a cluster, which is stopped before goroutines
// are counted.
type withCluster struct{ *testing.M }

func (m withCluster) Run() int { return testcluster.Main(m.M, testcluster.Options{}) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(withCluster{m}) }

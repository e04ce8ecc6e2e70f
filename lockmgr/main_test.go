package lockmgr

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"janus.io/janus/test/testcluster"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// withCluster runs the tests with a cluster.
type withCluster struct{ *testing.M }

func (m withCluster) Run() int { return testcluster.Main(m.M, testcluster.Options{}) }

func TestMain(m *testing.M) {
	var connections []goleak.Option
	for _, function := range testcluster.Connections() {
		connections = append(connections, goleak.IgnoreAnyFunction(function))
	}
	goleak.VerifyTestMain(withCluster{m}, connections...)
}

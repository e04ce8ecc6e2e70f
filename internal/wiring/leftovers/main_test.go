package leftovers_test

import (
	"os"
	"testing"

	"janus.io/janus/test/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{Audit: true, ControllerManager: true}))
}

package harness

import (
	"path/filepath"
	"testing"

	"janus.io/janus/test/testcluster"
)

// Main runs the tests of a package that runs whole Transactions, and returns the status to
// exit with: on a cluster with the controllers, the CRD and an audit log. It fails if Janus
// was refused a request for lack of a right.
func Main(m *testing.M) int {
	return testcluster.Main(m, testcluster.Options{
		ControllerManager: true, Audit: true, CRDs: filepath.Join(Root(), "deploy", "crd"), Judge: JudgeRights,
	})
}

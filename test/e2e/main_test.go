// Package test/e2e runs whole Transactions on a real API server and looks at what is
// there afterwards: phases, reasons, messages, events, targets, and that nothing
// is left behind.
package e2e

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{
		ControllerManager: true, Audit: true, CRDs: "../../deploy/crd", Judge: harness.JudgeRights,
	}))
}

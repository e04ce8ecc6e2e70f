// Package content runs Transactions on a real API server whose content is not in them but in
// Secrets and ConfigMaps.
package content

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{
		ControllerManager: true, Audit: true, CRDs: "../../../deploy/crd", Judge: harness.JudgeRights,
	}))
}

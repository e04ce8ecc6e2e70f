// Package sweep makes and rolls back changes of every kind that the API server has, with the
// controllers of these kinds running, and compares what is there afterwards with what was there
// before. docs/reference/kinds.md has the table of what came out.
package sweep

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{
		ControllerManager: true, Nodes: 2, Audit: true, CRDs: "../../../deploy/crd", Judge: harness.JudgeRights, Alone: true,
	}))
}

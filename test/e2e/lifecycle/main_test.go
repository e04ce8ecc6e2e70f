// Package lifecycle follows Transactions from their creation to the end and beyond: what a
// commit or a rollback leaves and costs, what tools see of each phase, and how a Transaction is
// remembered, undone, deleted and expires.
package lifecycle

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

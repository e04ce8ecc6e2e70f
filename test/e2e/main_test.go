// Package test/e2e runs whole Transactions on a real API server and looks at what is
// there afterwards: phases, reasons, messages, events, targets, and that nothing
// is left behind.
package e2e

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

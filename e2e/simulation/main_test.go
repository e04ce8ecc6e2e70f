package simulation

import (
	"os"
	"runtime/debug"
	"testing"
)

// Each run allocates a few megabytes and keeps none of them.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

package simulation

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

// Each run allocates a few megabytes and keeps none of them. To note where costs more
// than one would like; -test.memprofilerate gives it back.
func TestMain(m *testing.M) {
	runtime.MemProfileRate = 0
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

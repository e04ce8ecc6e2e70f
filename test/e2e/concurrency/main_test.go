// Package concurrency shows that the guarantees hold when Janus is not alone or not whole: it is
// stopped or killed after any step and another resumes, two run at once, one wakes up late,
// rights go away midway, and Transactions want the same targets.
package concurrency

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

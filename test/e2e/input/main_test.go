// Package input shows that every Transaction ends, whatever is asked of it, and says why: what
// is wrong is refused before anything is done or rolled back, what only looks wrong works, and
// a plan, and the check before the first change, know as much beforehand as can be known.
package input

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// Package size runs the largest Transactions that Janus takes, with a janusd as it is shipped,
// and measures how much memory that one needs.
package size

import (
	"os"
	"testing"

	"janus.io/janus/test/testcluster"
)

// Each test has a control plane of its own: what the store has been given once counts against
// its quota until it is compacted.
func TestMain(m *testing.M) { os.Exit(testcluster.Main(m, testcluster.Options{})) }

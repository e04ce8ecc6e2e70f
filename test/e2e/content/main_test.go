// Package content shows that content which is not in a Transaction but in Secrets and
// ConfigMaps is treated like content in it: pinned, checked, kept confidential, and undone.
package content

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

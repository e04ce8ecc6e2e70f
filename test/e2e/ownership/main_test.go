// Package ownership shows whose fields are whose before, during and after a Transaction that
// other clients write beside: what Kubernetes does about fields and their owners (facts), each
// shown with a client of its own first; conflicts, forced changes and fields that are given
// back; and that the next apply of everybody works as before (walkthrough).
package ownership

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

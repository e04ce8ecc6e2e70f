// Package interop runs Transactions between two releases of the tools that keep objects: Helm,
// Flux, Argo CD and kubectl, each as it is published, on a real API server. It shows what the
// next release of each meets.
package interop

import (
	"os"
	"testing"

	"janus.io/janus/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

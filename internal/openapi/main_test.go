package openapi

import (
	"os"
	"testing"

	"janus.io/janus/test/testcluster"
)

// Alone: a test looks at every object of the cluster, and others delete kinds meanwhile.
func TestMain(m *testing.M) { os.Exit(testcluster.Main(m, testcluster.Options{Alone: true})) }

package serving

import (
	"os"
	"testing"

	"janus.io/janus/internal/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m, testcluster.Options{})) }

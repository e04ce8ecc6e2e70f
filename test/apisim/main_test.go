package apisim_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"janus.io/janus/test/testcluster"
)

var (
	firstSeed = flag.Uint64("apisim.seed", 1, "the seed of the first sequence of requests")
	sequences = flag.Int("apisim.sequences", 100, "how many sequences of requests to compare")
	length    = flag.Int("apisim.length", 40, "how many requests a sequence has")
	tolerance = flag.Int("apisim.failures", 3, "after how many sequences that differ to stop")
)

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := crds()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := testcluster.Main(m, testcluster.Options{ControllerManager: true, CRDs: dir})
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// crds puts the CRDs that the model knows into one directory.
func crds() (string, error) {
	dir, err := os.MkdirTemp("", "apisim-crds-")
	if err != nil {
		return "", err
	}
	for _, path := range []string{"../../deploy/crd/backup.janus.io_transactions.yaml", "../../testdata/crds/widgets.yaml", "testdata/crds/sprockets.yaml", "testdata/crds/brackets.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600); err != nil { //nolint:gosec // the paths are those above
			return "", err
		}
	}
	return dir, nil
}

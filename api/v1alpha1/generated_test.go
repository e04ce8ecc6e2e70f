package v1alpha1_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGeneratedFilesAreUpToDate generates the CRD and the deep-copy functions
// again with the pinned generator, and compares them byte for byte.
func TestGeneratedFilesAreUpToDate(t *testing.T) {
	root := filepath.Join("..", "..")
	fresh := t.TempDir()
	generate := exec.CommandContext(t.Context(), "go", "tool", "-modfile=hack/tools/go.mod", "controller-gen",
		"object", "crd", "paths=./api/v1alpha1", "output:dir="+fresh)
	generate.Dir = root
	said, err := generate.CombinedOutput()
	require.NoError(t, err, "%s", said)

	unwrap := exec.CommandContext(t.Context(), "go", "run", "./hack/unwrap",
		filepath.Join(fresh, crdFile), filepath.Join(fresh, "backup.janus.io_locktables.yaml"))
	unwrap.Dir = root
	said, err = unwrap.CombinedOutput()
	require.NoError(t, err, "%s", said)

	versions := exec.CommandContext(t.Context(), "go", "run", "./hack/versions", filepath.Join(fresh, crdFile))
	versions.Dir = root
	said, err = versions.CombinedOutput()
	require.NoError(t, err, "%s", said)

	committed := map[string]string{
		crdFile:                           filepath.Join(root, "deploy", "crd", crdFile),
		"backup.janus.io_locktables.yaml": filepath.Join(root, "deploy", "enforced", "objects", "backup.janus.io_locktables.yaml"),
		"zz_generated.deepcopy.go":        "zz_generated.deepcopy.go",
	}
	entries, err := os.ReadDir(fresh)
	require.NoError(t, err)
	require.Len(t, entries, len(committed), "the generator makes these files and no others")
	for name, path := range committed {
		want, err := os.ReadFile(filepath.Join(fresh, name))
		require.NoError(t, err)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s has drifted from the types: run make generate", path)
	}
}

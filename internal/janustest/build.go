package janustest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// BuildJanusd builds janusd as it is shipped, without the race detector, and gives its
// path.
func BuildJanusd(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "janusd")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, "./cmd/janusd")
	build.Dir = Root()
	build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

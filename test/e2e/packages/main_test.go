package packages

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

// scratch is a directory for what all tests share.
var scratch string

// Nodes, so that the Pods of the Deployment are really made, and become ready, although
// nothing runs in them.
func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "janus-packages-"); err != nil {
		panic(err)
	}
	status := testcluster.Main(m, testcluster.Options{Nodes: 1, Audit: true, Alone: true})
	_ = os.RemoveAll(scratch)
	os.Exit(status)
}

// A desk is where the person sits who installs Janus: a shell in the root of
// the repository.
type desk struct {
	t     *testing.T
	shell *testcluster.Shell
	// dist is what a command may call $DIST.
	dist string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	shell, err := testcluster.Shared(t).NewShell("default", harness.Root())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shell.Close()) })
	return &desk{t: t, shell: shell}
}

// run types a command that must succeed.
func (d *desk) run(command string) string {
	d.t.Helper()
	printed, err := d.shell.Run(d.t.Context(), command)
	require.NoError(d.t, err, printed)
	return strings.TrimSpace(printed)
}

// until types a command until it prints what is wanted.
func (d *desk) until(command, wanted string) {
	d.t.Helper()
	var printed string
	require.Eventually(d.t, func() bool {
		var err error
		printed, err = d.shell.Run(d.t.Context(), command)
		printed = strings.TrimSpace(printed)
		return err == nil && printed == wanted
	}, patience, 200*time.Millisecond, "%s should print %q", command, wanted)
}

// read reads an object of the cluster.
func read[T any](d *desk, command string) T {
	d.t.Helper()
	var out T
	require.NoError(d.t, json.Unmarshal([]byte(d.run(command+" -o json")), &out))
	return out
}

package harness

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"janus.io/janus/test/testcluster"
)

// ProvideJanusd makes janusd one that is found in a shell. It has the rights that are
// shipped, also where its own namespace is that of the test, and not those of who types.
func (e *Env) ProvideJanusd(shell *testcluster.Shell) {
	e.t.Helper()
	e.OwnRights()
	dir := e.t.TempDir()
	kubeconfig, script := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "janusd")
	require.NoError(e.t, e.JanusdKubeconfig(e.t.Context(), kubeconfig))
	text := fmt.Sprintf("#!/bin/sh\nKUBECONFIG='%s' exec '%s' \"$@\"\n", kubeconfig, BuildJanusd(e.t))
	require.NoError(e.t, os.WriteFile(script, []byte(text), 0o700)) //nolint:gosec // G306: it is a program.
	require.NoError(e.t, shell.Provide("janusd", script))
}

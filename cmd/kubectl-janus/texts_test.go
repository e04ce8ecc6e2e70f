package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// What a shell has in the place of <(command) is a pipe, which is empty once it was read.
func TestManifestsThatComeThroughAPipeAreRead(t *testing.T) {
	piped := func(name string) string {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { _ = r.Close() })
		_, err = w.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n")
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return fmt.Sprintf("/dev/fd/%d", r.Fd())
	}
	file := filepath.Join(t.TempDir(), "file.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n"), 0o600))
	from := sources{}
	from.Filenames = []string{file, piped("second"), piped("third")}
	found, err := from.read(t.Context(), newSession(genericiooptions.IOStreams{}), "")
	require.NoError(t, err)
	var names []string
	for _, m := range found {
		names = append(names, m.GetName())
	}
	assert.Equal(t, []string{"first", "second", "third"}, names)
	assert.Equal(t, from.Filenames[1], found[1].source)

	pipe := piped("twice")
	from.Filenames = []string{pipe, pipe}
	_, err = from.read(t.Context(), newSession(genericiooptions.IOStreams{}), "")
	require.EqualError(t, err, "read the manifests: "+pipe+" is named twice")
}

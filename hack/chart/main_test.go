package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheTemplatesAreUpToDate(t *testing.T) {
	fresh := t.TempDir()
	require.NoError(t, write("../../deploy", fresh))
	for _, made := range templates {
		want, err := os.ReadFile(filepath.Join(fresh, made.name))
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join("../../deploy/chart/janus/templates", made.name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(have), "%s: run make generate", made.name)
	}
}

func TestTheReadmeHasEveryValue(t *testing.T) {
	want, err := readme("../../deploy/chart/janus")
	require.NoError(t, err)
	have, err := os.ReadFile("../../deploy/chart/janus/README.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(have), "run make generate")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "values.yaml"), []byte(`# About the file.

# How many.
a: 1
b:
  # Two lines,
  # or a | b.
  c: [x, "<y>"]
  d: null
# A group.
e:
  f: {}
`), 0o600))
	text, err := readme(dir)
	require.NoError(t, err)
	assert.Equal(t, aboveValues+"| `a` | `1` | How many. |\n| `b.c` | `[\"x\",\"<y>\"]` | Two lines, or a \\| b. |\n| `b.d` | `null` |  |\n| `e` |  | A group. |\n| `e.f` | `{}` |  |\n", text)
}

func TestWhatCannotBeATemplate(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("metadata:\n  name: a\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("metadata:\n  name: '{{ b }}'\n"), 0o600))

	_, err := template{sources: []string{"a.yaml"}, replace: []string{"name: b", "name: c"}}.render(dir)
	require.EqualError(t, err, `a.yaml: there is no "name: b"`)
	_, err = template{sources: []string{"b.yaml"}}.render(dir)
	require.EqualError(t, err, "b.yaml: braces would be taken for those of a template")
	_, err = template{sources: []string{"c.yaml"}}.render(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

package defects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cleanPasses has the stages that passed without a defect on these very files. It is kept in dist/, so that
// runs one after the other, each of some of the defects, need each stage only once.
type cleanPasses struct{ dir string }

func cleanPassesOf(t *testing.T, top string) cleanPasses {
	t.Helper()
	return cleanPasses{filepath.Join(top, "dist", "clean", digest(t, top))}
}

func (c cleanPasses) path(s stage) string {
	sum := sha256.Sum256([]byte(s.String()))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:8]))
}

func (c cleanPasses) has(s stage) bool {
	_, err := os.Stat(c.path(s))
	return err == nil
}

func (c cleanPasses) add(t *testing.T, s stage) {
	t.Helper()
	require.NoError(t, os.MkdirAll(c.dir, 0o750))
	require.NoError(t, os.WriteFile(c.path(s), []byte(s.String()+"\n"), 0o600))
}

// notRead are the files that no stage depends on: what is built, and what proofs writes after each slice.
var notRead = []string{".git", "bin", "dist", "docs/proofs.md", "hack/proofs/passed.yaml"}

// digest is that of all files below a directory, but for those in notRead.
func digest(t *testing.T, top string) string {
	t.Helper()
	all, files := sha256.New(), os.DirFS(top)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(notRead, path) && entry.IsDir():
			return fs.SkipDir
		case slices.Contains(notRead, path) || !entry.Type().IsRegular():
			return nil
		}
		content, err := fs.ReadFile(files, path)
		_, _ = fmt.Fprintf(all, "%s %x\n", path, sha256.Sum256(content))
		return err
	})
	require.NoError(t, err)
	return hex.EncodeToString(all.Sum(nil)[:8])
}

func TestAStageThatPassedIsRunAgainAfterAnyChange(t *testing.T) {
	top := t.TempDir()
	write := func(path, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(top, path)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(top, path), []byte(content), 0o600))
	}
	write("engine/engine.go", "package engine\n")
	s, other := stage{pkg: "engine", args: []string{"-seeds=1"}}, stage{pkg: "engine", args: []string{"-seeds=2"}}

	cleanPassesOf(t, top).add(t, s)
	write("docs/proofs.md", "26 defects\n")
	assert.True(t, cleanPassesOf(t, top).has(s), "what was kept is in dist/, which is no source")
	assert.False(t, cleanPassesOf(t, top).has(other), "it ran with other arguments")

	write("deploy/policy.yaml", "kind: ValidatingAdmissionPolicy\n")
	assert.False(t, cleanPassesOf(t, top).has(s), "a file was added")
	cleanPassesOf(t, top).add(t, s)
	write("engine/engine.go", "package engine // changed\n")
	assert.False(t, cleanPassesOf(t, top).has(s), "a file was changed")
}

// Package defects seeds defects into Janus, one at a time, and checks whether
// the tests of faults find them: a test that no defect can fail proves nothing.
package defects

import (
	"encoding/json"
	"flag"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// defect is a mistake to seed: texts that occur once each, and what takes their
// place. The files are Go, or manifests that tests read by harness.ReadSource.
type defect struct {
	Name string `json:"name"`
	// Because says where the mistake was made, or warned of, before.
	Because string `json:"because"`
	// Tier, if there is one, is the only tier that is apt to find it. Workloads and Only
	// are regular expressions for the workloads and the plans of the enumeration that
	// are; all by default. They save time, and nothing else.
	Tier      string `json:"tier"`
	Workloads string `json:"workloads"`
	Only      string `json:"only"`
	// Test, if there is one, is the package and the name of the test that finds it: for rules
	// about kinds, controllers and admission, which the tests of faults know little of.
	Test  string `json:"test"`
	Edits []edit `json:"edits"`
}

type edit struct {
	File string `json:"file"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

const root = "../../.."

func load(t *testing.T) []defect {
	t.Helper()
	content, err := os.ReadFile("testdata/defects.yaml")
	require.NoError(t, err)
	var out []defect
	require.NoError(t, yaml.UnmarshalStrict(content, &out))
	return out
}

// seeded returns the sources that a defect changes, by file.
func (d defect) seeded(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, e := range d.Edits {
		source, ok := out[e.File]
		if !ok {
			var err error
			source, err = os.ReadFile(filepath.Join(root, e.File))
			require.NoError(t, err)
		}
		require.Equal(t, 1, strings.Count(string(source), e.Old), "%s: this is to occur once in %s:\n%s", d.Name, e.File, e.Old)
		out[e.File] = []byte(strings.Replace(string(source), e.Old, e.New, 1))
	}
	return out
}

// overlay writes what go test -overlay takes, and returns its path.
func (d defect) overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for file, source := range d.seeded(t) {
		original, err := filepath.Abs(filepath.Join(root, file))
		require.NoError(t, err)
		replace[original] = filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		require.NoError(t, os.WriteFile(replace[original], source, 0o600))
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	path := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// A defect that can no longer be seeded would silently count for nothing.
func TestEveryDefectCanBeSeeded(t *testing.T) {
	names := map[string]bool{}
	for _, d := range load(t) {
		assert.False(t, names[d.Name], "%s is there twice", d.Name)
		names[d.Name] = true
		assert.NotEmpty(t, d.Because, d.Name)
		if pkg, test, found := strings.Cut(d.Test, " "); d.Test != "" {
			require.True(t, found, "%s: a package and a test, not %q", d.Name, d.Test)
			assert.True(t, defined(t, pkg, test), "%s: there is no %s in %s", d.Name, test, pkg)
		}
		for file, source := range d.seeded(t) {
			if filepath.Ext(file) != ".go" {
				continue
			}
			_, err := format.Source(source)
			require.NoError(t, err, "%s: %s is no Go any more", d.Name, file)
		}
	}
	assert.GreaterOrEqual(t, len(names), 40)
}

var builds = flag.Bool("builds", false, "build what each defect changes")

// A defect that does not compile any more would be caught by nothing.
func TestEveryDefectBuilds(t *testing.T) {
	if !*builds {
		t.Skip("it builds what each defect changes if -builds is given, which takes some minutes")
	}
	for _, d := range load(t) {
		packages := d.packages()
		if len(packages) == 0 {
			continue // It is in a manifest.
		}
		t.Run(d.Name, func(t *testing.T) {
			args := append([]string{"build", "-o=" + os.DevNull, "-overlay=" + d.overlay(t)}, packages...)
			cmd := exec.CommandContext(t.Context(), "go", args...)
			cmd.Dir = root
			output, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s", output)
		})
	}
}

// packages are those of the Go sources that a defect changes.
func (d defect) packages() []string {
	var out []string
	for _, e := range d.Edits {
		if dir := "./" + filepath.Dir(e.File); filepath.Ext(e.File) == ".go" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// defined reports whether a package has a test.
func defined(t *testing.T, pkg, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(source), "func "+test+"(t *testing.T)") {
			return true
		}
	}
	return false
}

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// module writes a plugin that prints its version, as small as they come, for every platform
// is compiled in a test.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":                    "module example.com/tiny\n\ngo 1.26\n",
		"cmd/kubectl-janus/main.go": "package main\n\nvar version = \"none\"\n\nfunc main() { println(version) }\n",
		"cmd/kubectl-janus/kubectl_complete-janus": "#!/bin/sh\n",
		"LICENSE": "Do as you like.\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "cmd/kubectl-janus/kubectl_complete-janus"), 0o700))
	return dir
}

// release makes the archives of the tiny plugin and returns the directory that they are in.
func release(t *testing.T, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plugin")
	o, err := parse(append([]string{"--root=" + module(t), "--version-variable=main.version", "--version=v1.2.3", "--output=" + dir}, args...), io.Discard)
	require.NoError(t, err)
	require.NoError(t, run(t.Context(), o))
	return dir
}

// all are the archives of a release, and where they are for.
var all = map[string][2]string{
	"kubectl-janus_v1.2.3_darwin_amd64.tar.gz": {"darwin", "amd64"},
	"kubectl-janus_v1.2.3_darwin_arm64.tar.gz": {"darwin", "arm64"},
	"kubectl-janus_v1.2.3_linux_amd64.tar.gz":  {"linux", "amd64"},
	"kubectl-janus_v1.2.3_linux_arm64.tar.gz":  {"linux", "arm64"},
	"kubectl-janus_v1.2.3_windows_amd64.zip":   {"windows", "amd64"},
}

func TestTheArchives(t *testing.T) {
	dir := release(t)
	assert.Len(t, filesIn(t, dir), len(all)+1)
	for file, platform := range all {
		t.Run(file, func(t *testing.T) {
			plugin := "kubectl-janus"
			if platform[0] == "windows" {
				plugin += ".exe"
			}
			content := read(t, filepath.Join(dir, file))
			var names, modes []string
			var program []byte
			for _, f := range unpacked(t, file, content) {
				names, modes = append(names, f.name), append(modes, fmt.Sprintf("%o", f.mode))
				if f.name == plugin {
					program = f.content
				}
			}
			assert.Equal(t, []string{"LICENSE", plugin, "kubectl_complete-janus"}, names)
			assert.Equal(t, []string{"644", "755", "755"}, modes)
			said := built(t, program)
			assert.Contains(t, said, "GOOS="+platform[0]+"\n")
			assert.Contains(t, said, "GOARCH="+platform[1]+"\n")
			assert.Contains(t, said, "CGO_ENABLED=0\n")
			if platform == [2]string{runtime.GOOS, runtime.GOARCH} {
				assert.Equal(t, "v1.2.3\n", execute(t, program))
			}
		})
	}
}

func TestTheManifestIsOfTheArchives(t *testing.T) {
	dir := release(t, "--downloads=https://example.com/v1.2.3/", "--homepage=https://example.com/janus")
	m := manifestIn(t, dir)
	assert.Equal(t, "krew.googlecontainertools.github.com/v1alpha2", m.APIVersion)
	assert.Equal(t, "Plugin", m.Kind)
	assert.Equal(t, "janus", m.Metadata.Name)
	assert.Equal(t, "v1.2.3", m.Spec.Version)
	assert.Equal(t, "https://example.com/janus", m.Spec.Homepage)
	assert.Contains(t, m.Spec.Caveats, "/store/janus/v1.2.3/kubectl_complete-janus")
	require.Len(t, m.Spec.Platforms, len(all))
	for _, p := range m.Spec.Platforms {
		file := strings.TrimPrefix(p.URI, "https://example.com/v1.2.3/")
		require.Contains(t, all, file)
		assert.Equal(t, map[string]string{"os": all[file][0], "arch": all[file][1]}, p.Selector.MatchLabels)
		content := read(t, filepath.Join(dir, file))
		sum := sha256.Sum256(content)
		assert.Equal(t, hex.EncodeToString(sum[:]), p.SHA256)
		var names, taken []string
		for _, f := range unpacked(t, file, content) {
			names = append(names, f.name)
		}
		for _, f := range p.Files {
			taken = append(taken, f.From)
			assert.Equal(t, ".", f.To)
		}
		assert.Contains(t, names, p.Bin)
		assert.Equal(t, names, taken)
	}
}

func TestWithoutAURLTheManifestNamesTheFiles(t *testing.T) {
	dir := release(t, "--platforms=linux/amd64")
	m := manifestIn(t, dir)
	require.Len(t, m.Spec.Platforms, 1)
	assert.Equal(t, "kubectl-janus_v1.2.3_linux_amd64.tar.gz", m.Spec.Platforms[0].URI)
	assert.NotContains(t, string(read(t, filepath.Join(dir, manifestFile))), "homepage")
}

func TestSameSourcesGiveTheSameArchives(t *testing.T) {
	// Each has sources of its own in another directory, so that paths and times would show.
	args := []string{"--platforms=linux/amd64,windows/amd64"}
	one, other := release(t, args...), release(t, args...)
	require.Len(t, filesIn(t, one), 3)
	for _, file := range filesIn(t, one) {
		assert.True(t, bytes.Equal(read(t, filepath.Join(one, file)), read(t, filepath.Join(other, file))), "%s differs", file)
	}
}

func TestTheBillIsOfTheArchives(t *testing.T) {
	bill := filepath.Join(t.TempDir(), "bill.json")
	dir := release(t, "--platforms=linux/amd64,windows/amd64", "--sbom="+bill)
	bom := new(cdx.BOM)
	require.NoError(t, cdx.NewBOMDecoder(bytes.NewReader(read(t, bill)), cdx.BOMFileFormatJSON).Decode(bom))
	assert.Equal(t, "kubectl-janus", bom.Metadata.Component.Name)
	assert.Equal(t, "v1.2.3", bom.Metadata.Component.Version)
	require.Len(t, *bom.Metadata.Component.Components, 2)
	for _, file := range *bom.Metadata.Component.Components {
		sum := sha256.Sum256(read(t, filepath.Join(dir, file.Name)))
		assert.Equal(t, hex.EncodeToString(sum[:]), (*file.Hashes)[0].Value)
	}
	require.Len(t, *bom.Components, 1)
	assert.Equal(t, "std", (*bom.Components)[0].Name)
}

func TestAFileThatIsMissingIsNamed(t *testing.T) {
	root := module(t)
	require.NoError(t, os.Remove(filepath.Join(root, "LICENSE")))
	o, err := parse([]string{"--root=" + root, "--platforms=linux/amd64", "--output=" + t.TempDir()}, io.Discard)
	require.NoError(t, err)
	require.ErrorContains(t, run(t.Context(), o), "LICENSE")
}

func TestPlatformsAreOSAndArch(t *testing.T) {
	var said bytes.Buffer
	_, err := parse([]string{"--platforms=amd64"}, &said)
	require.Error(t, err)
	assert.Contains(t, said.String(), `"amd64" is not written as os/arch`)
}

type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Version, Homepage, Caveats string
		Platforms                  []struct {
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			URI    string
			SHA256 string
			Bin    string
			Files  []struct{ From, To string }
		}
	}
}

func manifestIn(t *testing.T, dir string) manifest {
	t.Helper()
	var m manifest
	require.NoError(t, yaml.Unmarshal(read(t, filepath.Join(dir, manifestFile)), &m))
	return m
}

// unpacked returns what is in an archive; owners and times must be those of every release.
func unpacked(t *testing.T, file string, content []byte) []entry {
	t.Helper()
	var out []entry
	if strings.HasSuffix(file, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		for _, f := range r.File {
			opened, err := f.Open()
			require.NoError(t, err)
			inside, err := io.ReadAll(opened)
			require.NoError(t, err)
			assert.True(t, f.Modified.Equal(epoch))
			out = append(out, entry{f.Name, f.Mode(), inside})
		}
		return out
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	assert.True(t, compressed.ModTime.IsZero())
	r := tar.NewReader(compressed)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		assert.Equal(t, [3]int64{0, 0, epoch.Unix()}, [3]int64{int64(header.Uid), int64(header.Gid), header.ModTime.Unix()})
		assert.Empty(t, header.Uname+header.Gname)
		inside, err := io.ReadAll(r)
		require.NoError(t, err)
		out = append(out, entry{header.Name, header.FileInfo().Mode(), inside})
	}
}

// built is what go says of how a program was built.
func built(t *testing.T, program []byte) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "go", "version", "-m", written(t, program)).Output()
	require.NoError(t, err)
	return string(said)
}

func execute(t *testing.T, program []byte) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), written(t, program)).CombinedOutput()
	require.NoError(t, err)
	return string(said)
}

func written(t *testing.T, program []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plugin")
	require.NoError(t, os.WriteFile(file, program, 0o700))
	return file
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

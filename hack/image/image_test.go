package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// module writes a program that prints its version, as small as they come.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":           "module example.com/tiny\n\ngo 1.26\n",
		"cmd/tiny/main.go": "package main\n\nvar version = \"none\"\n\nfunc main() { println(version) }\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

func flags(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parse(args, io.Discard)
	require.NoError(t, err)
	return o
}

func TestImage(t *testing.T) {
	output := filepath.Join(t.TempDir(), "dist", "tiny")
	o := flags(t, "--root="+module(t), "--version-variable=main.version", "--package=./cmd/tiny", "--version=v1.2.3", "--tag=v1.2.3", "--output="+output)
	digest, err := run(t.Context(), o)
	require.NoError(t, err)

	index, descriptor := readLayout(t, output)
	assert.Equal(t, digest, descriptor.Digest.String())
	assert.Equal(t, "v1.2.3", descriptor.Annotations[refName])
	require.NoError(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	labels := map[string]string{
		"org.opencontainers.image.title":    "tiny",
		"org.opencontainers.image.version":  "v1.2.3",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	assert.Equal(t, labels, manifest.Annotations)

	machines := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
	require.Len(t, manifest.Manifests, len(machines))
	for _, m := range manifest.Manifests {
		platform := m.Platform.String()
		image, err := index.Image(m.Digest)
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		assert.Equal(t, platform, config.OS+"/"+config.Architecture)
		assert.Equal(t, "65532:65532", config.Config.User)
		assert.Equal(t, []string{"/tiny"}, config.Config.Entrypoint)
		assert.Equal(t, labels, config.Config.Labels)
		assert.Zero(t, config.Created.Unix())

		content := onlyFile(t, image)
		parsed, err := elf.NewFile(bytes.NewReader(content))
		require.NoError(t, err)
		assert.Equal(t, machines[platform], parsed.Machine)
		libraries, err := parsed.ImportedLibraries()
		require.NoError(t, err)
		assert.Empty(t, libraries, "it must run without a C library")
		if platform == runtime.GOOS+"/"+runtime.GOARCH {
			assert.Equal(t, "v1.2.3\n", execute(t, content))
		}
	}
}

func TestSameSourcesGiveTheSameDigest(t *testing.T) {
	for name, output := range map[string]string{"a directory": "tiny", "an archive": "tiny.tar"} {
		t.Run(name, func(t *testing.T) {
			var digests []string
			var files [][]byte
			for range 2 {
				// Another directory, so that paths would show.
				o := flags(t, "--root="+module(t), "--version-variable=main.version", "--package=./cmd/tiny", "--output="+filepath.Join(t.TempDir(), output))
				digest, err := run(t.Context(), o)
				require.NoError(t, err)
				digests = append(digests, digest)
				if strings.HasSuffix(output, ".tar") {
					content, err := os.ReadFile(o.output)
					require.NoError(t, err)
					files = append(files, content)
				}
			}
			assert.Equal(t, digests[0], digests[1])
			if len(files) == 2 {
				assert.True(t, bytes.Equal(files[0], files[1]), "the archives differ")
			}
		})
	}
}

func TestVersionChangesTheDigest(t *testing.T) {
	root := module(t)
	var digests []string
	for _, version := range []string{"v1", "v2"} {
		digest, err := run(t.Context(), flags(t, "--root="+root, "--version-variable=main.version", "--package=./cmd/tiny", "--version="+version,
			"--platforms=linux/amd64", "--output="+filepath.Join(t.TempDir(), "tiny")))
		require.NoError(t, err)
		digests = append(digests, digest)
	}
	assert.NotEqual(t, digests[0], digests[1])
}

func TestOutputIsReplacedOnlyIfItIsALayout(t *testing.T) {
	root, output := module(t), filepath.Join(t.TempDir(), "tiny")
	o := flags(t, "--root="+root, "--version-variable=main.version", "--package=./cmd/tiny", "--platforms=linux/amd64", "--output="+output)
	for range 2 {
		_, err := run(t.Context(), o)
		require.NoError(t, err)
	}
	require.NoError(t, os.Remove(filepath.Join(output, "oci-layout")))
	_, err := run(t.Context(), o)
	require.ErrorIs(t, err, errNoLayout)
	assert.FileExists(t, filepath.Join(output, "index.json"))
}

func TestProgramThatDoesNotBuild(t *testing.T) {
	output := filepath.Join(t.TempDir(), "tiny")
	_, err := run(t.Context(), flags(t, "--root="+module(t), "--version-variable=main.version", "--package=./cmd/other", "--output="+output))
	require.ErrorContains(t, err, "build ./cmd/other for linux/amd64")
	assert.NoFileExists(t, output)
}

func TestPlatformsAreOSAndArch(t *testing.T) {
	_, err := parse([]string{"--platforms=amd64"}, io.Discard)
	require.Error(t, err)
}

func readLayout(t *testing.T, dir string) (v1.ImageIndex, v1.Descriptor) {
	t.Helper()
	root, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	manifest, err := root.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	return index, manifest.Manifests[0]
}

// onlyFile returns the only file of an image, the program tiny.
func onlyFile(t *testing.T, image v1.Image) []byte {
	t.Helper()
	return fileOf(t, image, "tiny")
}

// fileOf returns the only file of an image, which has the given name.
func fileOf(t *testing.T, image v1.Image, name string) []byte {
	t.Helper()
	layers, err := image.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	reader, err := layers[0].Uncompressed()
	require.NoError(t, err)
	archive := tar.NewReader(reader)
	header, err := archive.Next()
	require.NoError(t, err)
	assert.Equal(t, name, header.Name)
	assert.Equal(t, []int64{0o555, 0, 0, 0}, []int64{header.Mode, int64(header.Uid), int64(header.Gid), header.ModTime.Unix()})
	content, err := io.ReadAll(archive)
	require.NoError(t, err)
	_, err = archive.Next()
	require.ErrorIs(t, err, io.EOF)
	return slices.Clone(content)
}

func execute(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tiny")
	require.NoError(t, os.WriteFile(file, content, 0o700))
	said, err := exec.CommandContext(t.Context(), file).CombinedOutput()
	require.NoError(t, err)
	return string(said)
}

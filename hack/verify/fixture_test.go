package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"
)

const (
	version = "v1.2.3"
	commit  = "0123456789abcdef0123456789abcdef01234567"
	// linux and windows are the archives of the plugin.
	linux   = "kubectl-janus_v1.2.3_linux_amd64.tar.gz"
	windows = "kubectl-janus_v1.2.3_windows_amd64.zip"
)

// A trial is a small release of a small program, with a registry of its own.
type trial struct {
	*release
	t              *testing.T
	images, charts *place
	signer         signer
	// key is the file of the public key.
	key string
	// files are those of the release before they are written.
	files map[string][]byte
}

// newTrial makes a release whose files change has changed before they were summed and signed.
func newTrial(t *testing.T, change func(files map[string][]byte)) *trial {
	t.Helper()
	tr := &trial{t: t, files: map[string][]byte{}}
	program := compiled(t)
	image := imageOf(t, program)
	digest, err := image.Digest()
	require.NoError(t, err)
	bill := billOf(t, program)
	archive := packed(t, "kubectl-janus", program)
	zipped := zipOf(t, program)
	tr.files["janusd-v1.2.3.oci.tar"] = layoutOf(t, image)
	tr.files["janusd-v1.2.3.digest"] = []byte(digest.String() + "\n")
	tr.files["janusd-v1.2.3.cdx.json"] = bill
	tr.files["kubectl-janus-v1.2.3.cdx.json"] = bill
	tr.files[linux], tr.files[windows] = archive, zipped
	tr.files["install.yaml"] = []byte("containers:\n- name: janusd\n  image: example.com/janusd@" + digest.String() + "\n")
	tr.files["janus-1.2.3.tgz"] = packed(t, "janus/values.yaml", []byte("image:\n  digest: "+digest.String()+"\n"))
	tr.files["janus.yaml"] = []byte("platforms:\n- sha256: " + sum(archive) + "\n- sha256: " + sum(zipped) + "\n")
	if change != nil {
		change(tr.files)
	}
	dir := t.TempDir()
	tr.write(dir)
	tr.serve(image)
	tr.release, err = open(dir, version)
	require.NoError(t, err)
	var public string
	tr.signer, public, err = newSigner(t.Context())
	require.NoError(t, err)
	tr.key = filepath.Join(t.TempDir(), "key.pub")
	require.NoError(t, os.WriteFile(tr.key, []byte(public), 0o600))
	require.NoError(t, tr.signFiles(tr.signer))
	require.NoError(t, tr.attest(tr.signer, commit))
	require.NoError(t, tr.signRemote(tr.signer, commit, tr.images, tr.charts))
	return tr
}

func (tr *trial) write(dir string) {
	var sums strings.Builder
	for name, content := range tr.files {
		require.NoError(tr.t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		_, _ = fmt.Fprintf(&sums, "%s  %s\n", sum(content), name)
	}
	require.NoError(tr.t, os.WriteFile(filepath.Join(dir, sumsFile), []byte(sums.String()), 0o600))
}

// serve serves a registry that has the image and the chart.
func (tr *trial) serve(image v1.ImageIndex) {
	server := httptest.NewServer(newRegistry())
	tr.t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	var err error
	tr.images, err = at(tr.t.Context(), host+"/janus/janusd")
	require.NoError(tr.t, err)
	tr.charts, err = at(tr.t.Context(), host+"/janus/charts/janus")
	require.NoError(tr.t, err)
	require.NoError(tr.t, remote.WriteIndex(tr.images.Tag(version), image, tr.images.options...))
	chart, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		mutate.Addendum{Layer: static.NewLayer(tr.files["janus-1.2.3.tgz"], chartMediaType)})
	require.NoError(tr.t, err)
	require.NoError(tr.t, remote.Write(tr.charts.Tag("1.2.3"), chart, tr.charts.options...))
}

// check checks the release with the key that has signed it.
func (tr *trial) check() error { return tr.checkAs(&signers{key: tr.key}) }

func (tr *trial) checkAs(who *signers) error {
	t, err := who.trust()
	require.NoError(tr.t, err)
	var said bytes.Buffer
	return options{dir: tr.dir, version: version, from: origin{commit: commit}, images: tr.images, charts: tr.charts}.check(t, &said)
}

// file replaces a file of the release.
func (tr *trial) file(name string, content []byte) {
	require.NoError(tr.t, os.WriteFile(tr.path(name), content, 0o600))
}

func sum(content []byte) string {
	raw := sha256.Sum256(content)
	return hex.EncodeToString(raw[:])
}

// compiled returns a program as small as they come.
func compiled(t *testing.T) []byte {
	t.Helper()
	program, err := compile()
	require.NoError(t, err)
	return program
}

var compile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "tiny-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, content := range map[string]string{"go.mod": "module example.com/tiny\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	build := exec.Command("go", "build", "-o", "tiny", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOWORK=off", "GOFLAGS=-buildvcs=false")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said)
	}
	return os.ReadFile(filepath.Join(dir, "tiny"))
})

// billOf returns the bill of materials of a program.
func billOf(t *testing.T, program []byte) []byte {
	t.Helper()
	built := modules{}
	require.NoError(t, built.add(program))
	components := []map[string]string{}
	for module := range built {
		name, version, _ := strings.Cut(module, " ")
		components = append(components, map[string]string{"name": name, "version": version})
	}
	content, err := json.Marshal(map[string]any{"bomFormat": "CycloneDX", "version": 1, "components": components})
	require.NoError(t, err)
	return content
}

func imageOf(t *testing.T, program []byte) v1.ImageIndex {
	t.Helper()
	content := packed(t, "janusd", program)
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, tarball.WithMediaType(types.OCILayer))
	require.NoError(t, err)
	image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
		OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers"}, Config: v1.Config{Entrypoint: []string{"/janusd"}},
	})
	require.NoError(t, err)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer})
	require.NoError(t, err)
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}})
}

// layoutOf returns an OCI layout of an image as a tar.
func layoutOf(t *testing.T, image v1.ImageIndex) []byte {
	t.Helper()
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	require.NoError(t, err)
	require.NoError(t, path.AppendIndex(image))
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	require.NoError(t, w.AddFS(os.DirFS(dir)))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// packed returns a .tar.gz with one file.
func packed(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, compressed.Close())
	return out.Bytes()
}

func zipOf(t *testing.T, program []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	file, err := w.Create("kubectl-janus.exe")
	require.NoError(t, err)
	_, err = file.Write(program)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

package packages

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"janus.io/janus/test/harness"
)

// What docs/install.md has people type to install the plugin, in a directory with the files
// of a release.
var (
	fromTheArchive = []string{
		"mkdir -p ~/.local/bin",
		"tar -xzf kubectl-janus_VERSION_linux_amd64.tar.gz -C ~/.local/bin kubectl-janus kubectl_complete-janus",
	}
	byKrew               = []string{"kubectl krew install --manifest=janus.yaml"}
	byKrewFromTheArchive = []string{"kubectl krew install --manifest=janus.yaml --archive=kubectl-janus_VERSION_linux_amd64.tar.gz"}
)

// installsThePlugin types it, each on a machine where nothing is installed yet.
func installsThePlugin(t *testing.T, dir string) {
	t.Helper()
	for name, commands := range map[string][]string{"from the archive": fromTheArchive, "by Krew": byKrew, "by Krew from the archive": byKrewFromTheArchive} {
		t.Run(name, func(t *testing.T) {
			d := newDownloader(t, dir)
			for _, command := range commands {
				command = strings.NewReplacer("VERSION", "v1.2.3-rc.1", "linux_amd64", "linux_"+runtime.GOARCH).Replace(command)
				d.run(command)
			}
			if strings.HasPrefix(name, "by Krew") {
				d.run(d.caveat("cp "))
			}
			assert.Equal(t, "kubectl janus v1.2.3-rc.1\n", d.run("kubectl janus --version"))
			assert.Contains(t, d.run("kubectl __complete janus hist"), "history\t")
		})
	}

	t.Run("Krew refuses another archive", func(t *testing.T) {
		other := t.TempDir()
		require.NoError(t, os.CopyFS(other, os.DirFS(dir)))
		archive := released[len(released)-1]
		require.NoError(t, os.WriteFile(filepath.Join(other, archive), []byte("other"), 0o600))
		d := newDownloader(t, other)
		said, err := d.try("kubectl krew install --manifest=janus.yaml --archive=" + archive)
		require.Error(t, err)
		assert.Contains(t, said, "checksum does not match")
	})
}

// TestKrewTakesEveryPlatform has Krew's own check of manifests look at one for all
// platforms. It downloads and installs each archive, as on that platform. The plugin in
// them is a tiny program: what is checked is how it is packed, and to build the real one
// five times takes long.
func TestKrewTakesEveryPlatform(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "cmd", "kubectl-janus"), 0o750))
	for name, content := range map[string]string{
		"go.mod":                    "module example.com/tiny\n\ngo 1.26\n",
		"cmd/kubectl-janus/main.go": "package main\n\nvar version = \"none\"\n\nfunc main() { println(version) }\n",
		"cmd/kubectl-janus/kubectl_complete-janus": "#!/bin/sh\n",
		"LICENSE": "Do as you like.\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	dir := filepath.Join(root, "release")
	downloads := serveFiles(t, dir)
	archive := filepath.Join(harness.Root(), "bin", "janus-archive")
	d := newDownloader(t, harness.Root())
	d.run("make -s bin/janus-archive")
	d.run(archive + " --root=" + root + " --version=v1.2.3 --version-variable=main.version --output=" + dir +
		" --downloads=" + downloads + " --homepage=https://example.com/janus")
	validate := tool(t, "validate-krew-manifest")
	manifest := filepath.Join(dir, "janus.yaml")
	said := d.run(validate + " -manifest=" + manifest)
	assert.Contains(t, said, "all 5 spec.platforms installed fine")

	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	for what, spoil := range map[string][2]string{
		"badly constructed":                {"bin: kubectl-janus\n", "bin: \"\"\n"},
		"overlapping":                      {"arch: arm64", "arch: amd64"},
		"could not find license file":      {"        - {from: LICENSE, to: .}\n", ""},
		"cannot be found in extracted arc": {"bin: kubectl-janus\n", "bin: kubectl-other\n"},
	} {
		spoiled := strings.ReplaceAll(string(text), spoil[0], spoil[1])
		require.NotEqual(t, string(text), spoiled)
		require.NoError(t, os.WriteFile(manifest, []byte(spoiled), 0o600)) //nolint:gosec // It is a file of this test.
		said, err := d.try(validate + " -manifest=" + manifest)
		require.Error(t, err, what)
		assert.Contains(t, said, what)
	}
}

// serveFiles serves the files of a directory, and returns the URL.
func serveFiles(t *testing.T, dir string) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL
}

// A downloader is a person with kubectl and Krew, and a home of their own, in a directory.
type downloader struct {
	t         *testing.T
	dir, home string
}

func newDownloader(t *testing.T, dir string) *downloader {
	t.Helper()
	d := &downloader{t: t, dir: dir, home: t.TempDir()}
	programs := filepath.Join(d.home, "programs")
	require.NoError(t, os.MkdirAll(programs, 0o750))
	require.NoError(t, os.Symlink(filepath.Join(harness.Root(), "bin", "janus-cluster"), filepath.Join(programs, "kubectl")))
	require.NoError(t, os.Symlink(tool(t, "krew"), filepath.Join(programs, "kubectl-krew")))
	return d
}

func (d *downloader) try(command string) (string, error) {
	d.t.Helper()
	run := exec.CommandContext(d.t.Context(), "bash", "-euo", "pipefail", "-c", command)
	run.Dir = d.dir
	run.Env = append(os.Environ(), "HOME="+d.home, "KUBECONFIG="+filepath.Join(d.home, "none"),
		// Go's caches are not below the home of another user.
		"GOCACHE="+goEnv(d.t, "GOCACHE"), "GOMODCACHE="+goEnv(d.t, "GOMODCACHE"), "GOPATH="+goEnv(d.t, "GOPATH"),
		"PATH="+strings.Join([]string{filepath.Join(d.home, ".krew", "bin"), filepath.Join(d.home, ".local", "bin"), filepath.Join(d.home, "programs"), os.Getenv("PATH")}, ":"))
	said, err := run.CombinedOutput()
	return string(said), err
}

func (d *downloader) run(command string) string {
	d.t.Helper()
	said, err := d.try(command)
	require.NoError(d.t, err, "%s\n%s", command, said)
	return said
}

// caveat is the line of the manifest's caveats that begins so: a command for people to type.
func (d *downloader) caveat(prefix string) string {
	d.t.Helper()
	var manifest struct{ Spec struct{ Caveats string } }
	require.NoError(d.t, yaml.Unmarshal([]byte(contentOf(d.t, d.dir, "janus.yaml")), &manifest))
	line := regexp.MustCompile(`(?m)^ *` + prefix + `.*$`).FindString(manifest.Spec.Caveats)
	require.NotEmpty(d.t, line)
	return line
}

// tool builds a pinned tool, or finds it where it was built before.
func tool(t *testing.T, name string) string {
	t.Helper()
	find := exec.CommandContext(t.Context(), "go", "tool", "-n", "-modfile=hack/tools/go.mod", name)
	find.Dir = harness.Root()
	path, err := find.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(path))
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(value))
}

func sumOf(t *testing.T, dir, file string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(contentOf(t, dir, file)))
	return hex.EncodeToString(sum[:])
}

package packages

import (
	"archive/tar"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"janus.io/janus/test/harness"
)

const repository = "registry.example.com/tools/janusd"

// released are the files of version v1.2.3-rc.1.
var released = []string{
	"SHA256SUMS", "install.yaml", "janus-1.2.3-rc.1.tgz", "janus-olm-1.2.3-rc.1.tar", "janusd-v1.2.3-rc.1.cdx.json", "janusd-v1.2.3-rc.1.digest", "janusd-v1.2.3-rc.1.oci.tar",
	"janus.yaml", "kubectl-janus-v1.2.3-rc.1.cdx.json", "kubectl-janus_v1.2.3-rc.1_linux_" + runtime.GOARCH + ".tar.gz",
}

// release runs make release, for one platform, and returns the directory that it has filled.
func release(t *testing.T, downloads string) string {
	t.Helper()
	dist := t.TempDir()
	run := exec.CommandContext(t.Context(), "make", "release", "VERSION=v1.2.3-rc.1", "REPOSITORY="+repository, "DIST="+dist, "DOWNLOADS="+downloads)
	run.Dir = harness.Root()
	run.Env = append(os.Environ(), "RELEASE_PLATFORMS=linux/"+runtime.GOARCH)
	said, err := run.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return filepath.Join(dist, "release")
}

func TestRelease(t *testing.T) {
	served := t.TempDir()
	downloads := serveFiles(t, served) + "/v"
	dir := release(t, downloads)
	require.NoError(t, os.Symlink(dir, filepath.Join(served, "v")))
	var files []string
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	require.ElementsMatch(t, released, files)
	digest := strings.TrimSpace(contentOf(t, dir, "janusd-v1.2.3-rc.1.digest"))
	assert.Regexp(t, "^sha256:[0-9a-f]{64}$", digest)

	t.Run("the checksums are those of all files", func(t *testing.T) {
		said, err := check(t, dir)
		require.NoError(t, err, said)
		assert.Equal(t, len(files)-1, strings.Count(said, ": OK\n"))
		spoiled := t.TempDir()
		require.NoError(t, os.CopyFS(spoiled, os.DirFS(dir)))
		require.NoError(t, os.WriteFile(filepath.Join(spoiled, "install.yaml"), []byte("other"), 0o600))
		said, err = check(t, spoiled)
		require.Error(t, err)
		assert.Contains(t, said, "install.yaml: FAILED")
	})

	t.Run("the layout has the image of the digest", func(t *testing.T) {
		var index struct {
			Manifests []struct{ Digest string }
		}
		require.NoError(t, json.Unmarshal(inArchive(t, filepath.Join(dir, "janusd-v1.2.3-rc.1.oci.tar"), "index.json"), &index))
		require.Len(t, index.Manifests, 1)
		assert.Equal(t, digest, index.Manifests[0].Digest)
	})

	t.Run("the manifests and the chart run it", func(t *testing.T) {
		helm := filepath.Join(harness.Root(), "bin", "helm")
		rendered, err := exec.CommandContext(t.Context(), helm, "template", "janus", filepath.Join(dir, "janus-1.2.3-rc.1.tgz"), "--namespace=janus-system").Output()
		require.NoError(t, err)
		assert.Equal(t, repository+"@"+digest, imageIn(t, contentOf(t, dir, "install.yaml")))
		assert.Equal(t, repository+"@"+digest, imageIn(t, string(rendered)))
		assert.Contains(t, string(rendered), `app.kubernetes.io/version: "v1.2.3-rc.1"`)
	})

	t.Run("the chart can be had from a registry", func(t *testing.T) {
		registry := httptest.NewServer(registry.New())
		t.Cleanup(registry.Close)
		charts := "oci://" + strings.TrimPrefix(registry.URL, "http://") + "/charts"
		helm := func(args ...string) string {
			run := exec.CommandContext(t.Context(), filepath.Join(harness.Root(), "bin", "helm"), append(args, "--plain-http")...)
			home := t.TempDir()
			run.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
			said, err := run.Output()
			require.NoError(t, err)
			return string(said)
		}
		helm("push", filepath.Join(dir, "janus-1.2.3-rc.1.tgz"), charts)
		assert.Equal(t, repository+"@"+digest, imageIn(t, helm("template", "janus", charts+"/janus", "--version=1.2.3-rc.1", "--namespace=janus-system")))
	})

	t.Run("the bundle runs it", func(t *testing.T) {
		version := string(inArchive(t, filepath.Join(dir, "janus-olm-1.2.3-rc.1.tar"), "./manifests/janus.clusterserviceversion.yaml"))
		assert.Contains(t, version, "    containerImage: "+repository+"@"+digest+"\n")
		assert.Contains(t, version, "\n  version: 1.2.3-rc.1\n")
	})

	t.Run("the bill of materials is of this image", func(t *testing.T) {
		bill := contentOf(t, dir, "janusd-v1.2.3-rc.1.cdx.json")
		assert.Contains(t, bill, digest)
		assert.Contains(t, bill, `"pkg:golang/k8s.io/client-go@v`)
	})

	t.Run("the plugin is installed as the page says", func(t *testing.T) { installsThePlugin(t, dir) })

	t.Run("the bill of materials of the plugin is of this archive", func(t *testing.T) {
		bill := contentOf(t, dir, "kubectl-janus-v1.2.3-rc.1.cdx.json")
		assert.Contains(t, bill, sumOf(t, dir, released[len(released)-1]))
		assert.Contains(t, bill, `"pkg:golang/k8s.io/cli-runtime@v`)
	})

	t.Run("it is the same a second time", func(t *testing.T) {
		assert.Equal(t, contentOf(t, dir, "SHA256SUMS"), contentOf(t, release(t, downloads), "SHA256SUMS"))
	})
}

func TestReleaseDemandsAVersion(t *testing.T) {
	dir := t.TempDir()
	run := exec.CommandContext(t.Context(), "hack/release/release.sh", "1.2", repository, dir)
	run.Dir = harness.Root()
	said, err := run.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, "release: 1.2 is no version such as v1.2.3 or v1.2.3-rc.1\n", string(said))
}

func contentOf(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return string(content)
}

// check does what anyone who has downloaded a release does.
func check(t *testing.T, dir string) (string, error) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "sha256sum", "--check", "SHA256SUMS")
	run.Dir = dir
	said, err := run.CombinedOutput()
	return string(said), err
}

// inArchive returns a file of a tar archive.
func inArchive(t *testing.T, path, name string) []byte {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	archive := tar.NewReader(file)
	for {
		header, err := archive.Next()
		require.NoError(t, err, "%s has no %s", path, name)
		if header.Name == name {
			content, err := io.ReadAll(archive)
			require.NoError(t, err)
			return content
		}
	}
}

// imageIn returns the image that the one Deployment of manifests runs.
func imageIn(t *testing.T, manifests string) string {
	t.Helper()
	objects, err := harness.Decode(manifests)
	require.NoError(t, err)
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			deployment := new(appsv1.Deployment)
			require.NoError(t, k8sruntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment))
			return deployment.Spec.Template.Spec.Containers[0].Image
		}
	}
	require.Fail(t, "there is no Deployment")
	return ""
}

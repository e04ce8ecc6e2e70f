package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"janus.io/janus/test/harness"
)

// artifact pushes files, given as name and text, as v1 of a repository. It returns the
// repository, and the digest.
func artifact(t *testing.T, files ...string) (name, digest string) {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	name = strings.TrimPrefix(server.URL, "http://") + "/shop/app"
	repo, err := remote.NewRepository(name)
	require.NoError(t, err)
	repo.PlainHTTP = true
	push := func(kind string, data []byte) ocispec.Descriptor {
		d := content.NewDescriptorFromBytes(kind, data)
		require.NoError(t, repo.Push(t.Context(), d, bytes.NewReader(data)))
		return d
	}
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: push("application/json", []byte("{}"))}
	manifest.SchemaVersion = 2
	for file := range slices.Chunk(files, 2) {
		layer := push("application/yaml", []byte(file[1]))
		layer.Annotations = map[string]string{ocispec.AnnotationTitle: file[0]}
		manifest.Layers = append(manifest.Layers, layer)
	}
	text, err := json.Marshal(manifest)
	require.NoError(t, err)
	described := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, text)
	require.NoError(t, repo.PushReference(t.Context(), described, bytes.NewReader(text), "v1"))
	return name, described.Digest.String()
}

const fromArtifact = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-artifact}\ndata: {a: b}\n"

func TestAnArtifactIsRunAndItsDigestIsOnTheTransaction(t *testing.T) {
	name, digest := artifact(t, "app.yaml", fromArtifact)
	e := harness.New(t)
	e.Start()
	out, err := runs(t, e, nil, "run", "-f", "oci://"+name+":v1", "--service-account", "deployer", "--name", "pulled", "--wait", "--timeout", "2m")
	require.NoError(t, err, out)
	assert.Equal(t, "b", e.Value("ConfigMap/from-artifact", "data", "a"))
	assert.Equal(t, "oci://"+name+"@"+digest, e.Transaction("pulled").Annotations[artifactAnnotation])

	_, err = runs(t, e, nil, "run", "-f", "oci://"+name+":v2", "--service-account", "deployer")
	require.ErrorContains(t, err, "read oci://"+name+":v2")
}

// reads reads the manifests of an artifact, without a cluster.
func reads(t *testing.T, name string) ([]manifest, error) {
	t.Helper()
	s := newSession(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: io.Discard, ErrOut: io.Discard})
	return sources{FilenameOptions: resource.FilenameOptions{Filenames: []string{"oci://" + name + ":v1"}}}.read(t.Context(), s, "shop")
}

// The names of files are those that the maker of the artifact likes.
func TestAFileIsNotTakenForAnArtifact(t *testing.T) {
	forged := "oci://shop.example/app@sha256:" + strings.Repeat("0", 64)
	name, digest := artifact(t, "app@sha256:"+strings.Repeat("0", 64)+"/app.yaml", fromArtifact, forged+"/b.yaml", strings.Replace(fromArtifact, "from-artifact", "b", 1))
	manifests, err := reads(t, name)
	require.NoError(t, err)
	require.Len(t, manifests, 2)
	assert.Equal(t, map[string]string{artifactAnnotation: "oci://" + name + "@" + digest}, artifactsOf(manifests))
	assert.Nil(t, artifactsOf([]manifest{{&unstructured.Unstructured{}, "app@sha256:1/app.yaml"}}))
}

// What is small in an artifact and would be large once it is read is refused, and not read.
func TestAnArtifactWithABombIsRefused(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString(fromArtifact + "l0: &l0 [lol]\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&laughs, "l%d: &l%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10))
	}
	deep := strings.Repeat("[", 1_000_000)
	for name, text := range map[string]string{
		"laughs.yaml": laughs.String(),
		"deep.yaml":   fromArtifact + "deep: " + deep,
		"deep.json":   `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "deep": ` + deep,
		"merged.yaml": strings.ReplaceAll(strings.ReplaceAll(laughs.String(), "[", "{<<: ["), "]", "]}"),
	} {
		t.Run(name, func(t *testing.T) {
			repo, _ := artifact(t, name, text)
			_, err := reads(t, repo)
			require.ErrorContains(t, err, "read the manifests: ")
			assert.Less(t, len(err.Error()), 2000)
		})
	}
}

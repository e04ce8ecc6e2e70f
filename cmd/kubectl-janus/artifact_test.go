package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"janus.io/janus/test/harness"
)

func TestAnArtifactIsRunAndItsDigestIsOnTheTransaction(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	name := strings.TrimPrefix(server.URL, "http://") + "/shop/app"
	repo, err := remote.NewRepository(name)
	require.NoError(t, err)
	repo.PlainHTTP = true
	push := func(kind string, data []byte) ocispec.Descriptor {
		d := content.NewDescriptorFromBytes(kind, data)
		require.NoError(t, repo.Push(t.Context(), d, bytes.NewReader(data)))
		return d
	}
	layer := push("application/yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-artifact}\ndata: {a: b}\n"))
	layer.Annotations = map[string]string{ocispec.AnnotationTitle: "app.yaml"}
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: push("application/json", []byte("{}")), Layers: []ocispec.Descriptor{layer}}
	manifest.SchemaVersion = 2
	text, err := json.Marshal(manifest)
	require.NoError(t, err)
	described := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, text)
	require.NoError(t, repo.PushReference(t.Context(), described, bytes.NewReader(text), "v1"))

	e := harness.New(t)
	e.Start()
	out, err := runs(t, e, nil, "run", "-f", "oci://"+name+":v1", "--service-account", "deployer", "--name", "pulled", "--wait", "--timeout", "2m")
	require.NoError(t, err, out)
	assert.Equal(t, "b", e.Value("ConfigMap/from-artifact", "data", "a"))
	assert.Equal(t, "oci://"+name+"@"+described.Digest.String(), e.Transaction("pulled").Annotations[artifactAnnotation])

	_, err = runs(t, e, nil, "run", "-f", "oci://"+name+":v2", "--service-account", "deployer")
	require.ErrorContains(t, err, "read oci://"+name+":v2")
}

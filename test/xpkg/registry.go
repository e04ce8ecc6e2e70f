// Package xpkg makes images of Crossplane packages, and serves them from a real registry in
// the process of a test or a demonstration.
package xpkg

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
)

// T is whom a registry is for: a test, or a program that ends if anything fails.
type T interface {
	require.TestingT
	Helper()
	Cleanup(func())
}

// Registry is a registry on this machine.
type Registry struct {
	// Host is its address, as it stands in the names of images.
	Host string
	t    T
}

// At is a registry that another process serves.
func At(t T, host string) *Registry { return &Registry{Host: host, t: t} }

// Serve starts a registry; wrap, which may be nil, puts a test's code in front of it.
func Serve(t T, wrap func(http.Handler) http.Handler) *Registry {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return At(t, strings.TrimPrefix(server.URL, "http://"))
}

// Layer is a layer of an image.
type Layer struct {
	Data []byte
	// Base says that it is annotated as that with the package.
	Base bool
}

// Push uploads a package under a name such as acme/provider-a:v1.0.0, and returns its digest.
func (r *Registry) Push(name, stream string) string {
	r.t.Helper()
	return r.PushLayers(name, Layer{Data: Gzip(Tar("package.yaml", stream)), Base: true})
}

// PushLayers uploads an image of layers, and returns its digest.
func (r *Registry) PushLayers(name string, layers ...Layer) string {
	r.t.Helper()
	repository, tag, _ := strings.Cut(name, ":")
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: r.blob(repository, ocispec.MediaTypeImageConfig, config(layers))}
	manifest.SchemaVersion = 2
	for _, layer := range layers {
		d := r.blob(repository, ocispec.MediaTypeImageLayerGzip, layer.Data)
		if layer.Base {
			d.Annotations = map[string]string{"io.crossplane.xpkg": "base"}
		}
		manifest.Layers = append(manifest.Layers, d)
	}
	return r.PushManifest(repository, tag, ocispec.MediaTypeImageManifest, manifest)
}

// config is the smallest configuration of an image. Crossplane compares its digests with what
// the layers unpack to.
func config(layers []Layer) []byte {
	ids := []string{}
	for _, layer := range layers {
		ids = append(ids, Digest(unpacked(layer.Data)))
	}
	text, _ := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": ids},
	})
	return text
}

// unpacked is a layer as it was before it was compressed, if it was.
func unpacked(data []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return data
	}
	out, _ := io.ReadAll(r)
	return out
}

// PushManifest uploads a manifest, and returns its digest.
func (r *Registry) PushManifest(repository, tag, kind string, manifest any) string {
	r.t.Helper()
	text, err := json.Marshal(manifest)
	require.NoError(r.t, err)
	r.put("/v2/"+repository+"/manifests/"+tag, kind, text)
	return Digest(text)
}

func (r *Registry) blob(repository, kind string, data []byte) ocispec.Descriptor {
	r.t.Helper()
	_, at := r.do(http.MethodPost, "/v2/"+repository+"/blobs/uploads/", "", nil)
	r.put(at+"?digest="+Digest(data), "application/octet-stream", data)
	var d ocispec.Descriptor
	require.NoError(r.t, json.Unmarshal(fmt.Appendf(nil, `{"mediaType": %q, "digest": %q, "size": %d}`, kind, Digest(data), len(data)), &d))
	return d
}

func (r *Registry) put(path, kind string, data []byte) {
	r.t.Helper()
	code, _ := r.do(http.MethodPut, path, kind, data)
	require.Less(r.t, code, 300, path)
}

// do returns the status of the answer, and where to go on.
func (r *Registry) do(method, path, kind string, data []byte) (code int, location string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), method, "http://"+r.Host+path, bytes.NewReader(data))
	require.NoError(r.t, err)
	request.Header.Set("Content-Type", kind)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	require.NoError(r.t, answer.Body.Close())
	return answer.StatusCode, answer.Header.Get("Location")
}

// Digest is the digest of bytes.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Gzip compresses bytes.
func Gzip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// Tar is an archive of files, given as their names and contents in turn.
func Tar(files ...string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		_ = w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg})
		_, _ = w.Write([]byte(files[i+1]))
	}
	_ = w.Close()
	return b.Bytes()
}

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// served starts a real registry, and returns its address.
func served(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

type blob struct {
	title string
	data  []byte
}

// put uploads a blob or a manifest.
func put(t *testing.T, url, kind string, data []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(data))
	require.NoError(t, err)
	r.Header.Set("Content-Type", kind)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Less(t, answer.StatusCode, 300, url)
}

// push uploads an artifact of layers, and returns its digest.
func push(t *testing.T, host, tag string, layers ...blob) string {
	t.Helper()
	upload := func(data []byte) ocispec.Descriptor {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+"/v2/shop/app/blobs/uploads/", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		put(t, "http://"+host+answer.Header.Get("Location")+"?digest="+digest(data), "application/octet-stream", data)
		var d ocispec.Descriptor
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"mediaType": "application/octet-stream", "digest": %q, "size": %d}`, digest(data), len(data)), &d))
		return d
	}
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: upload([]byte("{}"))}
	manifest.SchemaVersion = 2
	for _, layer := range layers {
		d := upload(layer.data)
		if layer.title != "" {
			d.Annotations = map[string]string{ocispec.AnnotationTitle: layer.title}
		}
		manifest.Layers = append(manifest.Layers, d)
	}
	text, err := json.Marshal(manifest)
	require.NoError(t, err)
	put(t, "http://"+host+"/v2/shop/app/manifests/"+tag, ocispec.MediaTypeImageManifest, text)
	return digest(text)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// archive is a tar archive of files, each given as its name, a colon and its text.
func archive(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, file := range files {
		name, text, _ := strings.Cut(file, ":")
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "link.yaml", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}))
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestAnArtifactIsReadHoweverItWasMade(t *testing.T) {
	host := served(t, nil)
	files := []string{"./b/two.yml:kind: B\n", "one.yaml:kind: A\n", "README.md:none", "._one.yaml:none"}
	want := []File{{"b/two.yml", []byte("kind: B\n")}, {"one.yaml", []byte("kind: A\n")}}
	for name, layers := range map[string][]blob{
		"flux": {{"", packed(t, archive(t, files...))}},
		"oras": {{"one.yaml", []byte("kind: A\n")}, {"b/two.yml", []byte("kind: B\n")}, {"README.md", []byte("none")}},
		"gzip": {{"one.yaml.gz", packed(t, []byte("kind: A\n"))}, {"b/two.yml", []byte("kind: B\n")}},
		"tar":  {{"", archive(t, files...)}},
	} {
		pinned := push(t, host, name, layers...)
		got, err := Pull(t.Context(), Scheme+host+"/shop/app:"+name)
		require.NoError(t, err, name)
		assert.Equal(t, Scheme+host+"/shop/app@"+pinned, got.Reference, name)
		assert.Equal(t, want, got.Files, name)
		again, err := Pull(t.Context(), got.Reference)
		require.NoError(t, err, name)
		assert.Equal(t, got, again, name)
	}
}

func TestWhatNoArtifactShouldHoldIsRefused(t *testing.T) {
	host := served(t, nil)
	whole := packed(t, archive(t, "one.yaml:kind: A\n"))
	for name, c := range map[string]struct {
		layers []blob
		says   string
	}{
		"nothing":       {nil, "no file that ends in .yaml"},
		"pictures":      {[]blob{{"a.png", []byte("PNG")}}, "no file that ends in .yaml"},
		"kustomization": {[]blob{{"", archive(t, "kustomization.yaml:resources: []")}}, "use -k"},
		"cut":           {[]blob{{"", whole[:len(whole)/2]}}, "is truncated or damaged"},
		"cut-tar":       {[]blob{{"", archive(t, "one.yaml:"+strings.Repeat("x", 2000))[:1500]}}, "is truncated or damaged"},
		"bomb":          {[]blob{{"one.yaml.gz", packed(t, make([]byte, maxBytes+1))}}, "it takes more than"},
		"zstd":          {[]blob{{"", []byte("\x28\xb5\x2f\xfd and so on")}}, "compressed by zstd, which is not supported"},
	} {
		push(t, host, name, c.layers...)
		_, err := Pull(t.Context(), Scheme+host+"/shop/app:"+name)
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, "read oci://"+host+"/shop/app:"+name, name)
	}
	// A name is never a path of this machine.
	push(t, host, "dots", blob{"", archive(t, "../../etc/one.yaml:kind: A\n")})
	got, err := Pull(t.Context(), Scheme+host+"/shop/app:dots")
	require.NoError(t, err)
	assert.Equal(t, []File{{"etc/one.yaml", []byte("kind: A\n")}}, got.Files)

	for _, address := range []string{"oci://", "oci://" + host, "oci://" + host + "/shop/app", "oci://" + host + "/shop/app:none", "oci://127.0.0.1:1/shop/app:v1"} {
		_, err := Pull(t.Context(), address)
		require.ErrorContains(t, err, "read "+address, address)
	}
}

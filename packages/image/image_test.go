package image_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"oras.land/oras-go/v2/registry/remote/auth"

	"janus.io/janus/internal/registries"
	"janus.io/janus/packages/image"
	"janus.io/janus/test/xpkg"
)

// provider is a package with a dependency and a definition.
const provider = `
apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: provider-a}
spec:
  crossplane: {version: ">=v2.0.0"}
  capabilities: [safe-start]
  dependsOn:
  - {provider: xpkg.acme.io/acme/provider-family, version: ">=v1.0.0"}
  - {apiVersion: pkg.crossplane.io/v1, kind: Function, package: xpkg.acme.io/acme/function-f, version: v1.0.0}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buckets.acme.io}
spec: {group: acme.io}
---
# nothing
`

// impatient is the patience of these tests.
var impatient = registries.Patience{Pull: time.Minute, Stall: time.Minute, Pause: time.Second, First: time.Millisecond, Attempts: 3}

func TestAPackageIsReadHoweverItsImageIsMade(t *testing.T) {
	r := xpkg.Serve(t, nil)
	other := xpkg.Tar("bin/provider", "ELF")
	for name, layers := range map[string][]xpkg.Layer{
		"the annotated layer":      {{Data: xpkg.Gzip(other)}, {Data: xpkg.Gzip(xpkg.Tar("README.md", "", "package.yaml", provider)), Base: true}},
		"a plain layer":            {{Data: xpkg.Tar("package.yaml", provider), Base: true}},
		"no annotation":            {{Data: xpkg.Gzip(xpkg.Tar("package.yaml", provider))}, {Data: xpkg.Gzip(other)}},
		"the later of two files":   {{Data: xpkg.Tar("package.yaml", "kind: Old")}, {Data: xpkg.Tar("./package.yaml", provider)}},
		"one in a directory":       {{Data: xpkg.Tar("deep/down/package.yaml", provider)}},
		"what is hidden, then not": {{Data: xpkg.Tar("a/package.yaml", "kind: Old", "b/package.yaml", provider)}, {Data: xpkg.Tar("a/.wh.package.yaml", "")}},
		"a hidden directory":       {{Data: xpkg.Tar("a/package.yaml", "kind: Old", "b/package.yaml", provider)}, {Data: xpkg.Tar(".wh.a", "")}},
		"an opaque directory":      {{Data: xpkg.Tar("a/package.yaml", "kind: Old", "b/package.yaml", provider)}, {Data: xpkg.Tar("a/.wh..wh..opq", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			digest := r.PushLayers("acme/provider-a:v1.0.0", layers...)
			c := image.Client{Patience: impatient}
			got, err := c.Digest(t.Context(), r.Host+"/acme/provider-a", "v1.0.0")
			require.NoError(t, err)
			require.Equal(t, digest, got)
			p, err := c.Fetch(t.Context(), r.Host+"/acme/provider-a", digest)
			require.NoError(t, err)
			require.Len(t, p.Objects, 1)
			assert.Equal(t, "buckets.acme.io", p.Objects[0].Name)
			p.Objects = nil
			assert.Equal(t, &image.Package{
				Kind: image.Provider, Name: "provider-a", Crossplane: ">=v2.0.0", Capabilities: []string{"safe-start"}, Size: int64(len(provider)),
				Dependencies: []image.Dependency{
					{Source: "xpkg.acme.io/acme/provider-family", Kind: image.Provider, Range: ">=v1.0.0"},
					{Source: "xpkg.acme.io/acme/function-f", Kind: image.Function, Range: "v1.0.0"},
				},
			}, p)
		})
	}
}

func TestAnImageForSeveralPlatformsIsReadAsCrossplaneDoes(t *testing.T) {
	r := xpkg.Serve(t, nil)
	one := r.Push("acme/provider-a:one", provider)
	two := r.Push("acme/provider-a:two", strings.ReplaceAll(provider, "provider-a", "provider-b"))
	push := func(tag string, children ...string) string {
		var manifests []any
		for i := 0; i < len(children); i += 2 {
			child := map[string]any{"mediaType": ocispec.MediaTypeImageManifest, "digest": children[i+1], "size": 1}
			if children[i] != "" {
				child["platform"] = map[string]any{"os": "linux", "architecture": children[i]}
			}
			manifests = append(manifests, child)
		}
		return r.PushManifest("acme/provider-a", tag, ocispec.MediaTypeImageIndex,
			map[string]any{"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageIndex, "manifests": manifests})
	}
	c := image.Client{Patience: impatient}
	for _, children := range [][]string{{"arm64", two, "amd64", one}, {"", one, "amd64", two}} {
		index := push("v1.0.0", children...)
		digest, err := c.Digest(t.Context(), r.Host+"/acme/provider-a", "v1.0.0")
		require.NoError(t, err)
		require.Equal(t, index, digest, "the name of the revision comes from the index")
		p, err := c.Fetch(t.Context(), r.Host+"/acme/provider-a", digest)
		require.NoError(t, err)
		assert.Equal(t, "provider-a", p.Name)
	}
	_, err := c.Fetch(t.Context(), r.Host+"/acme/provider-a", push("arm", "arm64", one))
	require.ErrorContains(t, err, "it has no image for linux/amd64")
	_, err = c.Fetch(t.Context(), r.Host+"/acme/provider-a", push("nested", "amd64", push("inner", "amd64", one)))
	require.ErrorContains(t, err, "it is an index of an index")
}

func TestTheTagsOfARepositoryAreListed(t *testing.T) {
	r := xpkg.Serve(t, nil)
	for _, tag := range []string{"v1.0.0", "latest", "v1.1.0"} {
		r.Push("acme/provider-a:"+tag, provider)
	}
	c := image.Client{Patience: impatient}
	tags, err := c.Tags(t.Context(), r.Host+"/acme/provider-a")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"v1.0.0", "latest", "v1.1.0"}, tags)
	tags, err = c.Tags(t.Context(), r.Host+"/acme/nothing")
	require.NoError(t, err)
	assert.Empty(t, tags, "a repository that does not exist has no tags")
}

// A tag that moves between two requests does not change what is read.
func TestATagThatMovesIsReadAsItWas(t *testing.T) {
	r := xpkg.Serve(t, nil)
	r.Push("acme/provider-a:v1.0.0", provider)
	c := image.Client{Patience: impatient}
	digest, err := c.Digest(t.Context(), r.Host+"/acme/provider-a", "v1.0.0")
	require.NoError(t, err)
	r.Push("acme/provider-a:v1.0.0", strings.ReplaceAll(provider, "buckets", "boxes"))
	p, err := c.Fetch(t.Context(), r.Host+"/acme/provider-a", digest)
	require.NoError(t, err)
	assert.Equal(t, "buckets.acme.io", p.Objects[0].Name)
}

// faulty is a registry with a package that answers otherwise to what has part in its path,
// once it is switched on.
func faulty(t *testing.T, part string, answer func(n int32, w http.ResponseWriter, real func())) (r *xpkg.Registry, digest string, asked *atomic.Int32) {
	t.Helper()
	var on atomic.Bool
	asked = &atomic.Int32{}
	r = xpkg.Serve(t, func(real http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if !on.Load() || !strings.Contains(request.URL.Path, part) {
				real.ServeHTTP(w, request)
				return
			}
			answer(asked.Add(1), w, func() { real.ServeHTTP(w, request) })
		})
	})
	digest = r.Push("acme/provider-a:v1.0.0", provider)
	on.Store(true)
	return r, digest, asked
}

func status(code int, header ...string) func(int32, http.ResponseWriter, func()) {
	return func(_ int32, w http.ResponseWriter, _ func()) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func TestARegistryThatFailsIsToldOfByReason(t *testing.T) {
	for name, c := range map[string]struct {
		part   string
		answer func(int32, http.ResponseWriter, func())
		reason image.Reason
		says   string
		asked  int32
	}{
		"404 of the manifest": {"/manifests/", status(404), image.Reason(registries.NotFound), "HOST has no image", 1},
		"404 of the layer":    {"/blobs/", status(404), image.Reason(registries.NotFound), "HOST has no layer sha256:", 1},
		"401":                 {"/", status(401), image.Reason(registries.Unauthorized), "HOST answers 401 Unauthorized: log in", 1},
		"403":                 {"/blobs/", status(403), image.Reason(registries.Unauthorized), "HOST answers 403 Forbidden: log in", 1},
		"429":                 {"/manifests/", status(429), image.Reason(registries.TooManyRequests), "HOST answers 429 Too Many Requests, 3 times in a row", 3},
		"429, and long":       {"/manifests/", status(429, "Retry-After", "3600"), image.Reason(registries.TooManyRequests), "try again in 1h0m0s", 1},
		"500":                 {"/blobs/", status(500), image.Reason(registries.Unavailable), "HOST answers 500 Internal Server Error, 3 times in a row", 3},
		"503":                 {"/manifests/", status(503), image.Reason(registries.Unavailable), "HOST answers 503 Service Unavailable, 3 times in a row", 3},
		"a truncated layer": {"/blobs/", func(_ int32, w http.ResponseWriter, _ func()) {
			_ = http.NewResponseController(w).Flush() // Its length is not told.
			_, _ = io.WriteString(w, "\x1f\x8b")
		}, image.Reason(registries.Damaged), "is truncated: try again", 1},
		"another layer": {"/blobs/", func(_ int32, w http.ResponseWriter, _ func()) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(xpkg.Gzip(xpkg.Tar("package.yaml", strings.ReplaceAll(provider, "buckets", "boxes"), "padding", strings.Repeat("x", 1000))))
		}, image.Reason(registries.Damaged), "is not what its digest says", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, digest, asked := faulty(t, c.part, c.answer)
			_, err := image.Client{Patience: impatient}.Fetch(t.Context(), r.Host+"/acme/provider-a", digest)
			var of *image.Error
			require.ErrorAs(t, err, &of)
			assert.Equal(t, c.reason, of.Reason, err)
			assert.False(t, of.Permanent())
			require.ErrorContains(t, err, "image "+r.Host+"/acme/provider-a@"+digest+": ")
			require.ErrorContains(t, err, strings.ReplaceAll(c.says, "HOST", r.Host))
			assert.Equal(t, c.asked, asked.Load())
		})
	}
}

func TestARegistryThatRecoversIsAskedAgain(t *testing.T) {
	for _, part := range []string{"/manifests/", "/blobs/", "/tags/"} {
		r, digest, _ := faulty(t, part, func(n int32, w http.ResponseWriter, real func()) {
			if n <= 2 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			real()
		})
		c := image.Client{Patience: impatient}
		_, err := c.Tags(t.Context(), r.Host+"/acme/provider-a")
		require.NoError(t, err)
		_, err = c.Fetch(t.Context(), r.Host+"/acme/provider-a", digest)
		require.NoError(t, err)
	}
}

func TestARegistryThatSendsNothingIsGivenUp(t *testing.T) {
	ended := make(chan struct{})
	r, digest, _ := faulty(t, "/blobs/", func(_ int32, w http.ResponseWriter, _ func()) {
		_, _ = io.WriteString(w, "\x1f\x8b")
		_ = http.NewResponseController(w).Flush()
		<-ended
	})
	// Before the server is closed, which waits for its answers.
	t.Cleanup(func() { close(ended) })
	p := impatient
	p.Stall = 300 * time.Millisecond
	_, err := image.Client{Patience: p}.Fetch(t.Context(), r.Host+"/acme/provider-a", digest)
	var of *image.Error
	require.ErrorAs(t, err, &of)
	assert.Equal(t, image.Reason(registries.TooSlow), of.Reason)
	require.ErrorContains(t, err, r.Host+" has sent nothing for 300ms")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = image.Client{Patience: p}.Fetch(ctx, r.Host+"/acme/provider-a", digest)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCredentialsAreSent(t *testing.T) {
	r, digest, _ := faulty(t, "/", func(_ int32, w http.ResponseWriter, _ func()) {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	asked := ""
	c := image.Client{Patience: impatient, Credential: func(_ context.Context, host string) (auth.Credential, error) {
		asked = host
		return auth.Credential{Username: "me", Password: "hunter2"}, nil
	}}
	_, err := c.Fetch(t.Context(), r.Host+"/acme/provider-a", digest)
	require.ErrorContains(t, err, "answers 401 Unauthorized: log in")
	assert.NotContains(t, err.Error(), "hunter2")
	assert.Equal(t, r.Host, asked)
}

// files is an archive of so many files with paths that begin alike.
func files(n int, path string) []byte {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", path, i), "")
	}
	return xpkg.Tar(all...)
}

func TestAnImageThatIsNoPackageIsRefused(t *testing.T) {
	r := xpkg.Serve(t, nil)
	base := func(stream string) []xpkg.Layer {
		return []xpkg.Layer{{Data: xpkg.Tar("package.yaml", stream), Base: true}}
	}
	many := make([]xpkg.Layer, 257)
	for i := range many {
		many[i].Data = xpkg.Tar("a", "")
	}
	for name, c := range map[string]struct {
		layers []xpkg.Layer
		says   string
	}{
		"no layers":             {nil, "it has no file package.yaml"},
		"no such file":          {[]xpkg.Layer{{Data: xpkg.Tar("other.yaml", ""), Base: true}}, "it has no file package.yaml"},
		"a removed file":        {[]xpkg.Layer{{Data: xpkg.Tar("package.yaml", provider)}, {Data: xpkg.Tar(".wh.package.yaml", "")}}, "it has no file package.yaml"},
		"two annotated layers":  {append(base(provider), base(provider)...), "2 of its layers are annotated as base, and one may be"},
		"too many layers":       {many, "it has 257 layers, and 256 are allowed"},
		"no tar":                {[]xpkg.Layer{{Data: []byte(strings.Repeat("x", 2000)), Base: true}}, "a layer is no tar archive, or is truncated"},
		"zstd":                  {[]xpkg.Layer{{Data: []byte("\x28\xb5\x2f\xfd and so on"), Base: true}}, "a layer is compressed by zstd, which is not supported"},
		"an empty file":         {base(""), "it is not exactly one package: want one object of group meta.pkg.crossplane.io"},
		"two packages":          {base(provider + "---\napiVersion: meta.pkg.crossplane.io/v1\nkind: Function\n"), "it is not exactly one package"},
		"no YAML":               {base("a: [\n"), "its document 1 is no YAML"},
		"a hollow document":     {base(provider + "\n---\n[" + strings.Repeat("{},", 200_000) + "{}]"), "has more than 300000 values"},
		"a large document":      {base(provider + "\n---\nkind: " + strings.Repeat("x", 4<<20)), "takes more than 4194304 bytes"},
		"an alias":              {base(provider + "\n---\nkind: &a A\nother: *a\n"), "has a YAML alias"},
		"a million files":       {[]xpkg.Layer{{Data: xpkg.Gzip(files(210_000, "")), Base: true}}, "it has more than 200000 files"},
		"many files in layers":  {[]xpkg.Layer{{Data: xpkg.Gzip(files(110_000, "a"))}, {Data: xpkg.Gzip(files(110_000, "b"))}}, "it has more than 200000 files"},
		"long paths":            {[]xpkg.Layer{{Data: xpkg.Gzip(files(20, strings.Repeat("x", 1<<20-1000)))}}, "their paths take more than 16777216 bytes"},
		"an unknown kind":       {base("apiVersion: meta.pkg.crossplane.io/v9\nkind: Provider\n"), "it is of a kind that Crossplane does not know: meta.pkg.crossplane.io/v9, Kind=Provider"},
		"a payload of others":   {base(strings.ReplaceAll(provider, "kind: Provider", "kind: Configuration")), `it is a Configuration, and may not have CustomResourceDefinition.apiextensions.k8s.io "buckets.acme.io"`},
		"an object of no use":   {base(provider + "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"), `it is a Provider, and may not have Secret "s"`},
		"an object, no name":    {base(strings.ReplaceAll(provider, "buckets.acme.io", `""`)), "it has a CustomResourceDefinition.apiextensions.k8s.io without a name"},
		"a bad Crossplane":      {base(strings.ReplaceAll(provider, ">=v2.0.0", ">=v2 <v3")), `its range of versions of Crossplane is none: ">=v2 <v3"`},
		"a dependency on none":  {base(strings.ReplaceAll(provider, "provider:", "supplier:")), "its dependency 1 names no package"},
		"a dependency on a Pod": {base(strings.ReplaceAll(provider, "kind: Function", "kind: Pod")), "its dependency 2 is of a kind that is no package: pkg.crossplane.io/v1 Pod"},
		"a meta of other types": {base(strings.ReplaceAll(provider, "capabilities: [safe-start]", "capabilities: 5")), "its Provider cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			digest := r.PushLayers("acme/bad:v1.0.0", c.layers...)
			_, err := image.Client{Patience: impatient}.Fetch(t.Context(), r.Host+"/acme/bad", digest)
			var of *image.Error
			require.ErrorAs(t, err, &of)
			assert.True(t, of.Permanent(), err)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestAFunctionMayHaveAnyObjectsOfPackages(t *testing.T) {
	text := strings.Replace(provider, "kind: Provider", "kind: Function", 1)
	p, err := image.Parse([]byte(text))
	require.NoError(t, err)
	assert.Equal(t, image.Function, p.Kind)
	assert.Len(t, p.Objects, 1)
}

func FuzzAPackageIsParsedOrRefused(f *testing.F) {
	f.Add([]byte(provider))
	f.Add([]byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Function\nspec: {dependsOn: [null, {}]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := image.Parse(data)
		if err == nil {
			require.NotNil(t, p)
			require.Contains(t, image.Kinds, p.Kind)
		}
	})
}

func ExampleName() {
	fmt.Println(image.Name("xpkg.crossplane.io/crossplane-contrib/provider-aws-s3"))
	fmt.Println(image.RevisionName("provider-aws-s3", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"))
	// Output:
	// crossplane-contrib-provider-aws-s3
	// provider-aws-s3-0123456789ab
}

// A program with little memory reads small packages alone.
func TestAPackageIsNoLargerThanIsWanted(t *testing.T) {
	r := xpkg.Serve(t, nil)
	digest := r.Push("acme/provider-a:v1.0.0", provider)
	c := image.Client{Patience: impatient, MaxPackage: int64(len(provider))}
	_, err := c.Fetch(t.Context(), r.Host+"/acme/provider-a", digest)
	require.NoError(t, err)
	c.MaxPackage--
	_, err = c.Fetch(t.Context(), r.Host+"/acme/provider-a", digest)
	var of *image.Error
	require.ErrorAs(t, err, &of)
	assert.Equal(t, image.TooLarge, of.Reason)
	assert.False(t, of.Temporary())
}

// Package bundle reads manifests out of OCI artifacts, as flux push artifact, oras and crane make
// them.
//
// # Invariants
//
// A tag is resolved once, and all that is read after that is checked against its digest. Whatever
// a registry answers, no more than a bounded number of bytes is read and unpacked, no more than a
// bounded time is waited, and nothing is written to a file. The credentials of a registry are sent to no other host, but for the
// authorization server that it names itself, and over HTTPS alone, but for a loopback address.
package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"janus.io/janus/internal/registries"
)

// Scheme begins the address of an artifact.
const Scheme = "oci://"

// maxManifest is how large the manifest of an artifact may be, in bytes.
const maxManifest = 4 << 20

// Bundle is what an artifact holds.
type Bundle struct {
	// Reference names the artifact by its digest, whatever it was asked for by.
	Reference string
	// Files are its manifests, by their paths.
	Files []File
}

// File is a file with manifests.
type File struct {
	Path string
	Data []byte
}

var (
	errIndex    = errors.New("it is an index of several artifacts: name one of them by its digest")
	errEmpty    = errors.New("it has no file that ends in .yaml, .yml or .json")
	errManifest = fmt.Errorf("its manifest takes more than %d bytes", maxManifest)
)

// Pull reads an artifact with the credentials of the user, as docker, oras or flux have stored
// them.
func Pull(ctx context.Context, address string) (Bundle, error) {
	return pullWith(ctx, address, registries.DefaultPatience)
}

// pullWith is Pull with a patience of its own.
func pullWith(ctx context.Context, address string, p registries.Patience) (Bundle, error) {
	ctx, cancel := p.Limit(ctx)
	defer cancel()
	found, err := pull(ctx, strings.TrimPrefix(address, Scheme), p)
	if err != nil {
		return Bundle{}, fmt.Errorf("read %s: %w", address, err)
	}
	return found, nil
}

func pull(ctx context.Context, name string, p registries.Patience) (Bundle, error) {
	ref, err := registry.ParseReference(name)
	if err != nil {
		return Bundle{}, fmt.Errorf("want %sHOST/REPOSITORY:TAG or @sha256:DIGEST: %w", Scheme, err)
	}
	if ref.Reference == "" {
		return Bundle{}, fmt.Errorf("want %sHOST/REPOSITORY:TAG or @sha256:DIGEST: it has neither", Scheme)
	}
	repo, err := remote.NewRepository(name)
	if err != nil {
		return Bundle{}, fmt.Errorf("reach the registry: %w", err)
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{DetectDefaultNativeStore: true})
	if err != nil {
		return Bundle{}, fmt.Errorf("read the credentials for registries: %w", err)
	}
	repo.PlainHTTP = registries.Loopback(ref.Registry)
	repo.Client = &auth.Client{Client: p.Client(), Credential: credentials.Credential(store), Cache: auth.NewCache()}
	described, manifest, err := manifestOf(ctx, repo, ref)
	if err != nil {
		return Bundle{}, err
	}
	out := Bundle{Reference: Scheme + ref.Registry + "/" + ref.Repository + "@" + described.Digest.String()}
	u := &unpacking{limit: maxBytes}
	for _, layer := range manifest.Layers {
		data, err := layerOf(ctx, repo, layer, maxBytes-u.read)
		if err != nil {
			return Bundle{}, err
		}
		u.read += layer.Size
		if err := u.add(layer.Annotations[ocispec.AnnotationTitle], data); err != nil {
			return Bundle{}, err
		}
	}
	if len(u.files) == 0 {
		return Bundle{}, errEmpty
	}
	slices.SortStableFunc(u.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	out.Files = u.files
	return out, nil
}

func manifestOf(ctx context.Context, repo *remote.Repository, ref registry.Reference) (ocispec.Descriptor, ocispec.Manifest, error) {
	var none ocispec.Manifest
	described, body, err := repo.Manifests().FetchReference(ctx, ref.Reference)
	if err != nil {
		return described, none, registries.Explain(ctx, ref.Registry, "artifact "+ref.Repository+" "+ref.Reference, err)
	}
	defer func() { _ = body.Close() }()
	if described.Size > maxManifest {
		return described, none, errManifest
	}
	data, err := content.ReadAll(body, described)
	if err != nil {
		return described, none, registries.Explain(ctx, ref.Registry, "the manifest", err)
	}
	var manifest struct {
		ocispec.Manifest
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return described, none, fmt.Errorf("read its manifest: %w", err)
	}
	if len(manifest.Manifests) > 0 {
		return described, none, errIndex
	}
	return described, manifest.Manifest, nil
}

// layerOf reads a layer of at most so many bytes.
func layerOf(ctx context.Context, repo *remote.Repository, layer ocispec.Descriptor, most int64) ([]byte, error) {
	if layer.Size < 0 || layer.Size > most {
		return nil, errTooLarge
	}
	what := "layer " + layer.Digest.String()
	body, err := repo.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, registries.Explain(ctx, repo.Reference.Registry, what, err)
	}
	defer func() { _ = body.Close() }()
	data, err := content.ReadAll(body, layer)
	if err != nil {
		return nil, registries.Explain(ctx, repo.Reference.Registry, what, err)
	}
	return data, nil
}

// Package bundle reads manifests out of OCI artifacts, as flux push artifact, oras and crane make
// them.
//
// # Invariants
//
// A tag is resolved once, and all that is read after that is checked against its digest. Whatever
// a registry answers, no more than a bounded number of bytes is read and unpacked, and nothing
// is written to a file. The credentials of a registry are sent to no other host, but for the
// authorization server that it names itself, and over HTTPS alone, but for a loopback address.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// Scheme begins the address of an artifact.
const Scheme = "oci://"

// Limits of an artifact.
const (
	maxManifest = 4 << 20
	maxBytes    = 256 << 20 // compressed, and unpacked
	maxFiles    = 10_000
	pullTime    = 2 * time.Minute
)

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
	errTooLarge = fmt.Errorf("it takes more than %d bytes", maxBytes)
	errTooMany  = fmt.Errorf("it has more than %d files", maxFiles)
	errIndex    = errors.New("it is an index of several artifacts: name one of them by its digest")
	errEmpty    = errors.New("it has no file that ends in .yaml, .yml or .json")
	errGzip     = errors.New("a layer is compressed by gzip, and is truncated or damaged")
	errTar      = errors.New("a layer is a tar archive, and is truncated or damaged")
)

// Pull reads an artifact with the credentials of the user, as docker, oras or flux have stored
// them.
func Pull(ctx context.Context, address string) (Bundle, error) {
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	found, err := pull(ctx, strings.TrimPrefix(address, Scheme))
	if err != nil {
		return Bundle{}, fmt.Errorf("read %s: %w", address, err)
	}
	return found, nil
}

func pull(ctx context.Context, name string) (Bundle, error) {
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
	repo.PlainHTTP = loopback(ref.Registry)
	repo.Client = &auth.Client{Client: client(), Credential: credentials.Credential(store), Cache: auth.NewCache()}
	described, manifest, err := manifestOf(ctx, repo, ref.Reference)
	if err != nil {
		return Bundle{}, err
	}
	out := Bundle{Reference: Scheme + ref.Registry + "/" + ref.Repository + "@" + described.Digest.String()}
	u := &unpacking{}
	for _, layer := range manifest.Layers {
		if err := u.layer(ctx, repo, layer); err != nil {
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

// client gives up on a registry that does not answer, and repeats what is worth it.
func client() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 30 * time.Second
	return &http.Client{Transport: retry.NewTransport(transport)}
}

func loopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func manifestOf(ctx context.Context, repo *remote.Repository, reference string) (ocispec.Descriptor, ocispec.Manifest, error) {
	described, body, err := repo.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return described, ocispec.Manifest{}, fmt.Errorf("find it: %w", err)
	}
	defer func() { _ = body.Close() }()
	if described.Size > maxManifest {
		return described, ocispec.Manifest{}, errTooLarge
	}
	data, err := content.ReadAll(body, described)
	if err != nil {
		return described, ocispec.Manifest{}, fmt.Errorf("read its manifest: %w", err)
	}
	var manifest struct {
		ocispec.Manifest
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return described, ocispec.Manifest{}, fmt.Errorf("read its manifest: %w", err)
	}
	if len(manifest.Manifests) > 0 {
		return described, ocispec.Manifest{}, errIndex
	}
	return described, manifest.Manifest, nil
}

// unpacking collects the manifests of layers.
type unpacking struct {
	read, unpacked int64
	files          []File
}

func (u *unpacking) layer(ctx context.Context, repo *remote.Repository, layer ocispec.Descriptor) error {
	if u.read += layer.Size; layer.Size < 0 || u.read > maxBytes {
		return errTooLarge
	}
	body, err := repo.Blobs().Fetch(ctx, layer)
	if err != nil {
		return fmt.Errorf("read layer %s: %w", layer.Digest, err)
	}
	defer func() { _ = body.Close() }()
	data, err := content.ReadAll(body, layer)
	if err != nil {
		return fmt.Errorf("read layer %s: %w", layer.Digest, err)
	}
	return u.add(layer.Annotations[ocispec.AnnotationTitle], data)
}

// add unpacks a layer: a tar archive or one file, plain or compressed.
func (u *unpacking) add(title string, data []byte) error {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return errGzip
		}
		if data, err = u.limited(r, errGzip); err != nil {
			return err
		}
		title = strings.TrimSuffix(title, ".gz")
	}
	if len(data) > 262 && string(data[257:262]) == "ustar" {
		return u.archive(data)
	}
	return u.file(title, data)
}

func (u *unpacking) archive(data []byte) error {
	r := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errTar
		}
		if header.Typeflag != tar.TypeReg || !isManifest(header.Name) {
			continue
		}
		text, err := u.limited(r, errTar)
		if err != nil {
			return err
		}
		if err := u.file(header.Name, text); err != nil {
			return err
		}
	}
}

// limited reads no more than an artifact may still take.
func (u *unpacking) limited(r io.Reader, broken error) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes-u.unpacked+1))
	if u.unpacked += int64(len(data)); u.unpacked > maxBytes {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, broken
	}
	return data, nil
}

func (u *unpacking) file(name string, data []byte) error {
	// The name is shown, and opened nowhere.
	name = strings.TrimPrefix(path.Clean("/"+strings.ToValidUTF8(name, "")), "/")
	switch {
	case !isManifest(name):
		return nil
	case strings.TrimSuffix(path.Base(name), path.Ext(name)) == "kustomization":
		return fmt.Errorf("it has a %s: pull it into a directory, and use -k", path.Base(name))
	case len(u.files) == maxFiles:
		return errTooMany
	}
	u.files = append(u.files, File{Path: name, Data: data})
	return nil
}

// isManifest reports whether a file has manifests, by its name. What macOS and tar put beside
// files has not.
func isManifest(name string) bool {
	base := path.Base(name)
	switch path.Ext(base) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(base, ".")
	}
	return false
}

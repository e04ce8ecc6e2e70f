package image

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"janus.io/janus/internal/registries"
)

// Limits of an image. The last two are those of Crossplane.
const (
	maxManifest = 4 << 20   // of a manifest, in bytes
	maxLayer    = 256 << 20 // of all that is read of an image, in bytes
	maxLayers   = 256
	maxStream   = 200 << 20 // of package.yaml, in bytes
	maxTags     = 100_000
	maxPaths    = 200_000  // of files, those of all layers that are read
	maxNames    = 16 << 20 // of these paths, in bytes
)

// Credential finds what to log in with to a host; nothing, if there is nothing.
type Credential func(ctx context.Context, host string) (auth.Credential, error)

// Client reads images.
type Client struct {
	// Patience is how long a registry is waited for.
	Patience registries.Patience
	// Credential may be nil.
	Credential Credential
	// MaxPackage is how many bytes package.yaml may have; 0 for as many as Crossplane reads.
	MaxPackage int64
}

// enough ends the listing of tags.
var errEnough = errors.New("enough")

// Tags lists the tags of a repository. One that does not exist has none.
func (c Client) Tags(ctx context.Context, location string) ([]string, error) {
	repo, named, err := c.repository(location)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.Patience.Limit(ctx)
	defer cancel()
	var out []string
	err = repo.Tags(ctx, "", func(tags []string) error {
		if out = append(out, tags...); len(out) > maxTags {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil, &Error{Image: location, Reason: TooLarge, text: fmt.Sprintf("it has more than %d tags", maxTags)}
	}
	if err == nil {
		return out, nil
	}
	err = c.explain(ctx, named, location, "repository "+named.RepositoryStr(), err)
	var own *Error
	if errors.As(err, &own) && own.Reason == Reason(registries.NotFound) {
		return nil, nil
	}
	return nil, err
}

// Digest resolves a tag, as Crossplane does to name the revision of a package.
func (c Client) Digest(ctx context.Context, location, tag string) (string, error) {
	repo, named, err := c.repository(location)
	if err != nil {
		return "", err
	}
	ctx, cancel := c.Patience.Limit(ctx)
	defer cancel()
	described, err := repo.Manifests().Resolve(ctx, tag)
	if err != nil {
		return "", c.explain(ctx, named, location+":"+tag, "image "+named.RepositoryStr()+" "+tag, err)
	}
	return described.Digest.String(), nil
}

// Fetch reads the package in an image with a digest.
func (c Client) Fetch(ctx context.Context, location, digest string) (*Package, error) {
	repo, named, err := c.repository(location)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.Patience.Limit(ctx)
	defer cancel()
	r := reading{repo: repo, image: location + "@" + digest, max: cmp.Or(c.MaxPackage, maxStream), explain: func(what string, err error) error {
		return c.explain(ctx, named, location+"@"+digest, what, err)
	}}
	manifest, err := r.manifest(ctx, digest)
	if err != nil {
		return nil, err
	}
	data, err := r.stream(ctx, manifest)
	if err != nil {
		return nil, err
	}
	p, err := Parse(data)
	if err != nil {
		return nil, &Error{Image: r.image, Reason: InvalidPackage, text: err.Error()}
	}
	return p, nil
}

// repository is the client of one repository.
func (c Client) repository(location string) (*remote.Repository, name.Repository, error) {
	named, err := repository(location)
	if err != nil {
		return nil, named, err
	}
	repo, err := remote.NewRepository(address(named))
	if err != nil {
		return nil, named, invalid(location, "it names no repository")
	}
	client := &auth.Client{Client: c.Patience.Client(), Cache: auth.NewCache()}
	// As Crossplane has it: plain HTTP within private networks.
	repo.PlainHTTP = named.Scheme() == "http"
	if c.Credential != nil && (!repo.PlainHTTP || registries.Loopback(named.RegistryStr())) {
		client.Credential = auth.CredentialFunc(c.Credential)
	}
	repo.Client = client
	return repo, named, nil
}

// address is the name of a repository as the client has it: Docker Hub has two.
func address(named name.Repository) string {
	if path, ok := strings.CutPrefix(named.Name(), name.DefaultRegistry+"/"); ok {
		return "docker.io/" + path
	}
	return named.Name()
}

func (c Client) explain(ctx context.Context, named name.Repository, image, what string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	err = registries.Explain(ctx, named.RegistryStr(), what, err)
	var of *registries.Error
	if errors.As(err, &of) {
		return &Error{Image: image, Reason: Reason(of.Kind), text: of.Error(), cause: of}
	}
	return err
}

// reading reads one image.
type reading struct {
	repo    *remote.Repository
	image   string
	max     int64 // bytes of package.yaml
	explain func(what string, err error) error
}

func (r reading) refuse(reason Reason, format string, args ...any) error {
	return &Error{Image: r.image, Reason: reason, text: fmt.Sprintf(format, args...)}
}

// platform is the one that Crossplane takes of an image for several.
const platformOS, platformArchitecture = "linux", "amd64"

// manifest reads the manifest of an image; of an image for several platforms, of one.
func (r reading) manifest(ctx context.Context, digest string) (ocispec.Manifest, error) {
	var both struct {
		ocispec.Manifest
		Manifests []ocispec.Descriptor `json:"manifests"`
	}
	for range 2 {
		described, body, err := r.repo.Manifests().FetchReference(ctx, digest)
		if err != nil {
			return both.Manifest, r.explain("image "+r.image, err)
		}
		data, err := r.bounded(described, body)
		if err != nil {
			return both.Manifest, err
		}
		both.Manifests = nil
		if err := json.Unmarshal(data, &both); err != nil {
			return both.Manifest, r.refuse(InvalidPackage, "its manifest is no JSON")
		}
		if len(both.Manifests) == 0 {
			break
		}
		digest = ""
		for _, d := range both.Manifests {
			if d.Platform == nil || d.Platform.OS == platformOS && d.Platform.Architecture == platformArchitecture {
				digest = d.Digest.String()
				break
			}
		}
		if digest == "" {
			return both.Manifest, r.refuse(InvalidPackage, "it has no image for %s/%s", platformOS, platformArchitecture)
		}
	}
	switch {
	case len(both.Manifests) > 0:
		return both.Manifest, r.refuse(InvalidPackage, "it is an index of an index")
	case len(both.Layers) > maxLayers:
		return both.Manifest, r.refuse(TooLarge, "it has %d layers, and %d are allowed", len(both.Layers), maxLayers)
	}
	return both.Manifest, nil
}

func (r reading) bounded(described ocispec.Descriptor, body io.ReadCloser) ([]byte, error) {
	defer func() { _ = body.Close() }()
	if described.Size > maxManifest {
		return nil, r.refuse(TooLarge, "its manifest takes more than %d bytes", maxManifest)
	}
	data, err := content.ReadAll(body, described)
	if err != nil {
		return nil, r.explain("the manifest", err)
	}
	return data, nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const (
	bundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	chartMediaType  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// A place is a repository of a registry.
type place struct {
	name.Repository
	options []remote.Option
}

// at returns a repository. One on the loopback interface is spoken to without TLS.
func at(ctx context.Context, repository string) (*place, error) {
	repo, err := name.NewRepository(repository)
	if err != nil {
		return nil, err
	}
	return &place{repo, []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}}, nil
}

// checkRemoteImage checks the image in a registry, and what is attached to it.
func (r *release) checkRemoteImage(t *trust, p *place) error {
	digest, err := r.digest()
	if err != nil {
		return err
	}
	head, err := remote.Head(p.Tag(r.version), p.options...)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Tag(r.version), err)
	}
	if head.Digest.String() != digest {
		return fmt.Errorf("%s has the digest %s, and not %s", p.Tag(r.version), head.Digest, digest)
	}
	index, err := remote.Index(p.Digest(digest), p.options...)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Digest(digest), err)
	}
	if err := validate.Index(index); err != nil {
		return fmt.Errorf("%s: %w", p.Digest(digest), err)
	}
	return p.checkAttached(t, r, head.Digest, signType, provenanceType, billType)
}

// checkRemoteChart checks the chart in a registry, and its signature.
func (r *release) checkRemoteChart(t *trust, p *place) error {
	tag := p.Tag(strings.TrimPrefix(r.version, "v"))
	image, err := remote.Image(tag, p.options...)
	if err != nil {
		return fmt.Errorf("%s: %w", tag, err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		return fmt.Errorf("%s: %w", tag, err)
	}
	if len(manifest.Layers) != 1 || string(manifest.Layers[0].MediaType) != chartMediaType {
		return fmt.Errorf("%s is no chart", tag)
	}
	if manifest.Layers[0].Digest.String() != "sha256:"+r.sums[r.chart()] {
		return fmt.Errorf("%s is not %s", tag, r.chart())
	}
	if _, err := p.blob(manifest.Layers[0].Digest); err != nil {
		return fmt.Errorf("%s: %w", tag, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	return p.checkAttached(t, r, digest, signType)
}

// checkAttached verifies each bundle that is attached to a digest, and that there is one of each
// of the types.
func (p *place) checkAttached(t *trust, r *release, digest v1.Hash, kinds ...string) error {
	of := p.Digest(digest.String())
	lacks := map[string]bool{}
	for _, kind := range kinds {
		lacks[kind] = true
	}
	bundles, err := p.attached(of)
	if err != nil {
		return fmt.Errorf("attached to %s: %w", of, err)
	}
	for _, b := range bundles {
		statements, err := t.statements(b)
		if err != nil {
			return fmt.Errorf("attached to %s: %w", of, err)
		}
		for _, s := range statements {
			named, err := subjects(s)
			if err != nil {
				return fmt.Errorf("attached to %s: %w", of, err)
			}
			for subject, sum := range named {
				if sum != digest.Hex || len(named) != 1 {
					return fmt.Errorf("attached to %s: a %s of %s %s", of, s.GetPredicateType(), subject, sum)
				}
			}
			if s.GetPredicateType() == billType {
				if err := r.sameBill(r.imageBill(), s); err != nil {
					return fmt.Errorf("attached to %s: %w", of, err)
				}
			}
			delete(lacks, s.GetPredicateType())
		}
	}
	for _, kind := range kinds {
		if lacks[kind] {
			err = errors.Join(err, fmt.Errorf("%s has no %s attached", of, kind))
		}
	}
	return err
}

// attached returns the Sigstore bundles that refer to a digest.
func (p *place) attached(of name.Digest) ([][]byte, error) {
	referrers, err := remote.Referrers(of, p.options...)
	if err != nil {
		return nil, err
	}
	list, err := referrers.IndexManifest()
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, d := range list.Manifests {
		if d.ArtifactType != bundleMediaType {
			continue
		}
		image, err := remote.Image(p.Digest(d.Digest.String()), p.options...)
		if err != nil {
			return nil, err
		}
		manifest, err := image.Manifest()
		if err != nil {
			return nil, err
		}
		for _, layer := range manifest.Layers {
			content, err := p.blob(layer.Digest)
			if err != nil {
				return nil, err
			}
			out = append(out, content)
		}
	}
	return out, nil
}

// blob returns what the registry has of a digest; the reader compares it with that.
func (p *place) blob(digest v1.Hash) ([]byte, error) {
	layer, err := remote.Layer(p.Digest(digest.String()), p.options...)
	if err != nil {
		return nil, err
	}
	content, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, content)
	return b.Bytes(), errors.Join(err, content.Close())
}

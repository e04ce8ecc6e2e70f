package main

import (
	"errors"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// errNoImage cannot happen: what is made of an image is one.
var errNoImage = errors.New("no image was made of an image")

// attach attests something of a digest, and has the registry refer to it: with a manifest as
// those of cosign 3.
func (p *place) attach(signer signer, digest, kind string, predicate map[string]any) error {
	subject, err := remote.Head(p.Digest(digest), p.options...)
	if err != nil {
		return err
	}
	b, err := statementBundle(signer, kind, map[string]string{p.String(): strings.TrimPrefix(digest, "sha256:")}, predicate)
	if err != nil {
		return err
	}
	// The registry tells of a referrer what it is by the type of its config.
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), bundleMediaType)
	image, err = mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(b, bundleMediaType)})
	if err != nil {
		return err
	}
	annotated, ok := mutate.Annotations(image, map[string]string{
		"dev.sigstore.bundle.content":       "dsse-envelope",
		"dev.sigstore.bundle.predicateType": kind,
	}).(v1.Image)
	if !ok {
		return errNoImage
	}
	referrer, ok := mutate.Subject(annotated, v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}).(v1.Image)
	if !ok {
		return errNoImage
	}
	id, err := referrer.Digest()
	if err != nil {
		return err
	}
	return remote.Write(p.Digest(id.String()), referrer, p.options...)
}

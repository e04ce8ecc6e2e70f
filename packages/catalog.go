package packages

import (
	"context"
	"errors"
	"fmt"

	"janus.io/janus/packages/check"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
	"janus.io/janus/packages/resolve"
	"janus.io/janus/packages/version"
)

// maxFetched is how many images are read for one plan. A search that wants more is one that
// goes through all versions of several packages.
const maxFetched = 200

// catalog is what registries have, as the ImageConfigs of a cluster direct to them.
type catalog struct {
	planner Planner
	request Request
	state   installed.State
	read    map[string]*fetched
	bytes   int64 // of all that was read
}

// fetched is an image that was read.
type fetched struct {
	digest  string
	content *image.Package
}

// registry finds where an image is, and what to read it with.
func (c *catalog) registry(ctx context.Context, source, named string) (Registry, string, error) {
	at, err := c.state.Configs.Location(named)
	if err != nil {
		return nil, "", err
	}
	secret, err := c.state.Configs.PullSecret(at)
	if err != nil {
		return nil, "", err
	}
	var secrets []string
	for _, p := range c.state.Sourced(source) {
		secrets = append(secrets, p.PullSecrets...)
	}
	if source == c.request.Image.Source {
		secrets = append(secrets, c.request.PullSecrets...)
	}
	if secret != "" {
		secrets = append(secrets, secret)
	}
	r, err := c.planner.Registries(ctx, secrets)
	return r, at, err
}

// Versions implements resolve.Catalog.
func (c *catalog) Versions(ctx context.Context, source string) ([]string, error) {
	r, at, err := c.registry(ctx, source, source)
	if err != nil {
		return nil, err
	}
	tags, err := r.Tags(ctx, at)
	if err != nil {
		return nil, err
	}
	return version.Newest(tags), nil
}

// Dependencies implements resolve.Catalog.
func (c *catalog) Dependencies(ctx context.Context, source, v string) ([]resolve.Dependency, error) {
	f, err := c.fetch(ctx, source, v)
	var of *image.Error
	if errors.As(err, &of) && of.Permanent() {
		return nil, &resolve.UnusableError{Why: of.Error()}
	}
	if err != nil {
		return nil, err
	}
	return solvable(f.content.Dependencies), nil
}

func solvable(dependencies []image.Dependency) []resolve.Dependency {
	var out []resolve.Dependency
	for _, d := range dependencies {
		out = append(out, resolve.Dependency{Source: d.Source, Range: d.Range})
	}
	return out
}

func (c *catalog) content(ctx context.Context, source, v string) (*image.Package, error) {
	f, err := c.fetch(ctx, source, v)
	if err != nil {
		return nil, err
	}
	return f.content, nil
}

// fetch reads an image once: by the digest that its tag has then.
func (c *catalog) fetch(ctx context.Context, source, v string) (*fetched, error) {
	named := image.Reference{Source: source, Version: v}.String()
	if f, ok := c.read[named]; ok {
		return f, nil
	}
	if len(c.read) >= maxFetched {
		return nil, &resolve.GivenUpError{Steps: maxFetched}
	}
	r, at, err := c.registry(ctx, source, named)
	if err != nil {
		return nil, err
	}
	located, err := image.ParseReference(at)
	if err != nil {
		return nil, fmt.Errorf("find image %s: %w", named, err)
	}
	f := &fetched{digest: located.Version}
	if !version.IsDigest(f.digest) {
		if f.digest, err = r.Digest(ctx, located.Source, located.Version); err != nil {
			return nil, err
		}
	}
	if f.content, err = r.Fetch(ctx, located.Source, f.digest); err != nil {
		return nil, err
	}
	if c.bytes += f.content.Size; c.planner.MaxBytes > 0 && c.bytes > c.planner.MaxBytes {
		return nil, &findingError{check.Finding{Reason: check.ImageUnusable, Message: fmt.Sprintf("%s: the packages that the change is about take more than %d bytes together", named, c.planner.MaxBytes)}}
	}
	c.read[named] = f
	return f, nil
}

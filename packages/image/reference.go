package image

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"janus.io/janus/packages/version"
)

// Reference names the image of a package.
type Reference struct {
	// Source is the repository as it is written, without tag and digest. Crossplane tells
	// packages apart by this text.
	Source string
	// Version is the tag, or the digest.
	Version string
}

// String is the reference as it stands in spec.package.
func (r Reference) String() string {
	if version.IsDigest(r.Version) {
		return r.Source + "@" + r.Version
	}
	return r.Source + ":" + r.Version
}

// ParseReference parses what stands in spec.package: HOST/REPOSITORY:TAG or
// HOST/REPOSITORY@sha256:DIGEST. The host has a dot in it, as Crossplane demands.
func ParseReference(text string) (Reference, error) {
	ref, err := name.ParseReference(text, name.StrictValidation)
	if err != nil {
		return Reference{}, invalid(text, "want HOST/REPOSITORY:TAG, such as xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0")
	}
	host, _, _ := strings.Cut(text, "/")
	if !strings.Contains(host, ".") {
		return Reference{}, invalid(text, "its host needs a dot, such as xpkg.crossplane.io")
	}
	source := strings.TrimRight(strings.TrimSuffix(ref.String(), ref.Identifier()), ":@")
	if _, isDigest := ref.(name.Digest); isDigest && strings.Contains(source[strings.LastIndex(source, "/"):], ":") {
		// Crossplane would take the tag for a part of the source, and install the package a
		// second time for its dependents.
		return Reference{}, invalid(text, "it has a tag and a digest: leave out one of them")
	}
	return Reference{Source: source, Version: ref.Identifier()}, nil
}

// InvalidReferenceError says that a text names no image.
type InvalidReferenceError struct{ text, why string }

func (e *InvalidReferenceError) Error() string {
	return fmt.Sprintf("image %q: %s", e.text, e.why)
}

func invalid(text, why string) error { return &InvalidReferenceError{text, why} }

// repository is a repository by its registry and its path there.
func repository(source string) (name.Repository, error) {
	repo, err := name.NewRepository(source)
	if err != nil {
		return name.Repository{}, invalid(source, "it names no repository")
	}
	return repo, nil
}

// Name is what Crossplane calls a package that it installs as a dependency: the path of
// the repository, as a DNS label.
func Name(source string) string {
	repo, err := repository(source)
	if err != nil {
		return label(source)
	}
	return label(repo.RepositoryStr())
}

// RevisionName is the name of the revision of a package with an image.
func RevisionName(packageName, digest string) string {
	const longest, hex = 50, 12
	digest = strings.TrimPrefix(digest, "sha256:")
	return label(packageName[:min(longest, len(packageName))] + "-" + digest[:min(hex, len(digest))])
}

// label makes a DNS label of a text as Crossplane does.
func label(text string) string {
	const longest = 63
	var b strings.Builder
	for i := range min(longest, len(text)) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b.WriteByte(c)
		case strings.IndexByte("./:-", c) >= 0 && i != 0 && i != longest-1 && i != len(text)-1:
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

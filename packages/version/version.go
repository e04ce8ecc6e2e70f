// Package version has the versions of packages and the ranges of their dependencies, judged
// as Crossplane judges them: by the same release of the same library.
//
// # Invariants
//
// A range that this package accepts is one that Crossplane can parse. That matters beyond
// the package that has it: one range that Crossplane cannot parse stops it from resolving
// the dependencies of all packages. What is compared is never the text of a tag.
package version

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver"
)

// digests are what a version or a range may be in place of a semantic one.
var digests = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// IsDigest reports whether a version or a range is a digest.
func IsDigest(text string) bool { return digests.MatchString(text) }

// IsFull reports whether a tag is a semantic version with all three numbers, such as v1.2.3.
// Crossplane takes no other tag for a dependency: v1 could be any version.
func IsFull(tag string) bool {
	v, err := semver.NewVersion(tag)
	return err == nil && v.String() == strings.TrimPrefix(v.Original(), "v")
}

// Newest returns those tags that are full versions, the newest first. Of tags for the same
// version the order is that of their text.
func Newest(tags []string) []string {
	var out []string
	for _, tag := range tags {
		if IsFull(tag) {
			out = append(out, tag)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if order := Compare(b, a); order != 0 {
			return order
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(out)
}

// Compare orders two tags by their versions; what is no version comes first.
func Compare(a, b string) int {
	va, errA := semver.NewVersion(a)
	vb, errB := semver.NewVersion(b)
	switch {
	case errA != nil && errB != nil:
		return strings.Compare(a, b)
	case errA != nil:
		return -1
	case errB != nil:
		return 1
	default:
		return va.Compare(vb)
	}
}

// Range is the range of a dependency: a semantic one, or a digest.
type Range struct {
	text        string
	constraints *semver.Constraints
}

// ParseRange parses a range. Its error says how to write what was probably meant.
func ParseRange(text string) (Range, error) {
	if IsDigest(text) {
		return Range{text: text}, nil
	}
	c, err := semver.NewConstraint(text)
	if err == nil {
		return Range{text: text, constraints: c}, nil
	}
	parts := strings.Fields(text)
	if joined := strings.Join(parts, ","); len(parts) > 1 {
		if _, err := semver.NewConstraint(joined); err == nil {
			return Range{}, fmt.Errorf("%q is no range: the parts of a range are joined by commas, as in %q", text, joined)
		}
	}
	return Range{}, fmt.Errorf("%q is no range of versions", text)
}

// String is the range as it was written.
func (r Range) String() string { return r.text }

// Allows reports whether a version, which is a tag or a digest, is within the range. A tag
// that is no semantic version is within none, and no digest is within a semantic range.
func (r Range) Allows(version string) bool {
	if r.constraints == nil {
		return r.text == version
	}
	v, err := semver.NewVersion(version)
	return err == nil && r.constraints.Check(v)
}

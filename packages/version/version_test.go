package version_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/packages/version"
)

var digest = "sha256:" + strings.Repeat("0a", 32)

func TestARangeIsJudgedAsCrossplaneJudgesIt(t *testing.T) {
	for _, c := range []struct {
		text        string
		allowed     []string
		not         []string
		description string
	}{
		{">=v1.0.0", []string{"v1.0.0", "1.2.3", "v2.0.0"}, []string{"v0.9.9", "latest", digest}, "a prefix v is no part of a version"},
		{">=1.0.0,<2.0.0", []string{"v1.9.9"}, []string{"v2.0.0"}, "a comma is and"},
		{"<1.0.0 || >=2.0.0", []string{"v0.1.0", "v2.0.0"}, []string{"v1.0.0"}, "bars are or"},
		{"v1.2.0", []string{"v1.2.0"}, []string{"v1.2.1", "v1.3.0"}, "a version alone is that version"},
		{"1.2.x", []string{"v1.2.0", "v1.2.9"}, []string{"v1.3.0"}, "an x is any number"},
		{"^1.2.0", []string{"v1.9.0"}, []string{"v2.0.0", "v1.1.0"}, "a caret stays within the major version"},
		{"~1.2.0", []string{"v1.2.9"}, []string{"v1.3.0"}, "a tilde stays within the minor version"},
		{"1.0.0 - 2.0.0", []string{"v1.5.0", "v2.0.0"}, []string{"v2.0.1"}, "a dash between blanks is a range"},
		{">=1.0.0", []string{"v1.0.0"}, []string{"v2.0.0-rc.1"}, "a release range leaves out what comes before a release"},
		{">=1.0.0-0", []string{"v2.0.0-rc.1"}, nil, "unless it names one"},
		{digest, []string{digest}, []string{"v1.0.0", "sha256:" + strings.Repeat("1", 64)}, "a digest is itself alone"},
		{">=v1", []string{"v1"}, nil, "an installed tag may be short"},
	} {
		r, err := version.ParseRange(c.text)
		require.NoError(t, err, c.text)
		assert.Equal(t, c.text, r.String())
		for _, v := range c.allowed {
			assert.True(t, r.Allows(v), "%s: %s allows %s", c.description, c.text, v)
		}
		for _, v := range c.not {
			assert.False(t, r.Allows(v), "%s: %s does not allow %s", c.description, c.text, v)
		}
	}
}

func TestARangeThatCrossplaneCannotParseIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		">=1.0.0 <2.0.0": `">=1.0.0 <2.0.0" is no range: the parts of a range are joined by commas, as in ">=1.0.0,<2.0.0"`,
		"":               `"" is no range of versions`,
		"newest":         `"newest" is no range of versions`,
		"sha256:abc":     `"sha256:abc" is no range of versions`,
	} {
		_, err := version.ParseRange(text)
		assert.EqualError(t, err, want)
	}
}

func TestOnlyFullVersionsAreTakenNewestFirst(t *testing.T) {
	got := version.Newest([]string{"latest", "v1", "v1.2", "v1.10.0", "1.9.0", "v1.9.0", "v2.0.0-rc.1", "v1.10.0", "sha256-abc.sig", "v1.2.3.4"})
	assert.Equal(t, []string{"v2.0.0-rc.1", "v1.10.0", "1.9.0", "v1.9.0"}, got)
}

func TestTagsAreComparedByTheirVersions(t *testing.T) {
	assert.Negative(t, version.Compare("v1.9.0", "v1.10.0"))
	assert.Positive(t, version.Compare("v1.0.0", "v1.0.0-rc.1"))
	assert.Zero(t, version.Compare("1.0.0", "v1.0.0"))
	assert.Negative(t, version.Compare("latest", "v0.0.1"))
	assert.Positive(t, version.Compare("v0.0.1", digest))
	assert.Negative(t, version.Compare("a", "b"))
}

func FuzzARangeIsParsedOrRefused(f *testing.F) {
	f.Add(">=1.0.0,<2.0.0", "v1.0.0")
	f.Add("1.0.0 - 2.0.0 || ~3", "")
	f.Add(digest, digest)
	f.Fuzz(func(t *testing.T, text, tag string) {
		r, err := version.ParseRange(text)
		if err != nil {
			return
		}
		if version.IsDigest(text) {
			assert.Equal(t, text == tag, r.Allows(tag))
		}
		_ = r.Allows(tag)
	})
}

package image_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/packages/image"
)

var digest = "sha256:" + strings.Repeat("0a", 32)

func TestAReferenceIsTakenApartAsCrossplaneDoes(t *testing.T) {
	for text, want := range map[string]image.Reference{
		"xpkg.crossplane.io/acme/provider-a:v1.0.0":    {Source: "xpkg.crossplane.io/acme/provider-a", Version: "v1.0.0"},
		"127.0.0.1:5000/acme/provider-a:v1.0.0":        {Source: "127.0.0.1:5000/acme/provider-a", Version: "v1.0.0"},
		"docker.io/acme/provider-a:latest":             {Source: "docker.io/acme/provider-a", Version: "latest"},
		"xpkg.crossplane.io/acme/provider-a@" + digest: {Source: "xpkg.crossplane.io/acme/provider-a", Version: digest},
	} {
		got, err := image.ParseReference(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
		assert.Equal(t, text, got.String())
	}
}

func TestAReferenceThatCrossplaneRefusesOrMistakesIsRefused(t *testing.T) {
	const want = "want HOST/REPOSITORY:TAG, such as xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0"
	for text, why := range map[string]string{
		"":                                           want,
		"acme/provider-a:v1.0.0":                     want,
		"xpkg.crossplane.io/acme/provider-a":         want,
		"xpkg.crossplane.io/ACME/a:v1.0.0":           want,
		"localhost:5000/acme/a:v1.0.0":               "its host needs a dot, such as xpkg.crossplane.io",
		"xpkg.crossplane.io/acme/a:v1.0.0@" + digest: "it has a tag and a digest: leave out one of them",
	} {
		_, err := image.ParseReference(text)
		require.ErrorContains(t, err, why, text)
	}
}

func TestNamesAreThoseThatCrossplaneGives(t *testing.T) {
	assert.Equal(t, "acme-provider-a", image.Name("xpkg.crossplane.io/acme/provider-a"))
	assert.Equal(t, "acme-provider-a", image.Name("127.0.0.1:5000/acme/provider-a"))
	assert.Equal(t, "acme-a-b", image.Name("xpkg.crossplane.io/acme/a.b"))
	long := strings.Repeat("a", 60)
	assert.Len(t, image.RevisionName(long, digest), 63)
	assert.Equal(t, strings.Repeat("a", 50)+"-0a0a0a0a0a0a", image.RevisionName(long, digest))
}

func TestTheMostSpecificImageConfigApplies(t *testing.T) {
	configs := image.Configs{
		{Name: "mirror", Prefixes: []string{"xpkg.crossplane.io/", "xpkg.upbound.io/"}, Rewrite: "mirror.acme.io/"},
		{Name: "acme", Prefixes: []string{"xpkg.crossplane.io/acme/"}, Rewrite: "acme.io/packages/", PullSecret: "unused"},
		{Name: "secret", Prefixes: []string{"mirror.acme.io/", "acme.io/packages/"}, PullSecret: "pull"},
		{Name: "signed", Prefixes: []string{"acme.io/"}, Verified: true},
	}
	for image, want := range map[string][3]string{
		"xpkg.crossplane.io/other/a:v1": {"mirror.acme.io/other/a:v1", "pull", ""},
		"xpkg.crossplane.io/acme/a:v1":  {"acme.io/packages/a:v1", "pull", "signed"},
		"ghcr.io/acme/a:v1":             {"ghcr.io/acme/a:v1", "", ""},
	} {
		at, err := configs.Location(image)
		require.NoError(t, err)
		secret, err := configs.PullSecret(at)
		require.NoError(t, err)
		signed, err := configs.Verification(at)
		require.NoError(t, err)
		assert.Equal(t, want, [3]string{at, secret, signed}, image)
	}
	configs = append(configs, image.Config{Name: "twin", Prefixes: []string{"xpkg.crossplane.io/acme/"}, Rewrite: "twin.io/"})
	_, err := configs.Location("xpkg.crossplane.io/acme/a:v1")
	require.EqualError(t, err, "ImageConfigs acme and twin fit image xpkg.crossplane.io/acme/a:v1 equally well: Crossplane takes either")
}

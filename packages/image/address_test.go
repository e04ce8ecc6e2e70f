package image

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDockerHubIsAskedByItsOwnName(t *testing.T) {
	for source, want := range map[string]string{
		"docker.io/acme/a":       "docker.io/acme/a",
		"index.docker.io/acme/a": "docker.io/acme/a",
		"xpkg.acme.io/acme/a":    "xpkg.acme.io/acme/a",
	} {
		repo, err := repository(source)
		require.NoError(t, err)
		assert.Equal(t, want, address(repo))
		client, _, err := Client{}.repository(source)
		require.NoError(t, err)
		assert.False(t, client.PlainHTTP)
	}
}

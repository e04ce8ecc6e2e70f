package compile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/packages/change"
	"janus.io/janus/packages/image"
)

// The name of a package may have dots; that of a change may not, and the API server refuses the Transaction.
func TestChangesHaveNamesThatAreAllowed(t *testing.T) {
	long := strings.Repeat("a.", 60)
	var steps []change.Step
	for _, name := range []string{"acme.bucket", "acme-bucket", long + "b", long + "c"} {
		steps = append(steps, change.Step{
			Source: "xpkg.acme.io/acme/" + name, Kind: image.Provider, Name: name, To: "v1.0.0", Revision: "acme-bucket-000000000001", Content: &image.Package{},
		})
	}
	made, err := Transaction(change.Change{Type: change.Install, Root: steps[0].Source, Steps: steps}, Options{Namespace: "shop", ServiceAccount: "installer"})
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, c := range made.Spec.Changes {
		assert.Regexp(t, `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`, c.Name)
		assert.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
	}
	assert.True(t, seen["acme-bucket"] && seen["acme-bucket-2"], "%v", seen)
}

package formats

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/features"
)

// all opens every gate.
type all struct{}

func (all) Enabled(features.Feature) bool { return true }

func TestOnlyTheGatesOfCBORAreClosed(t *testing.T) {
	was := features.FeatureGates()
	defer features.ReplaceFeatureGates(was)
	features.ReplaceFeatureGates(all{})
	WithoutCBOR()
	now := features.FeatureGates()
	assert.False(t, now.Enabled(features.ClientsAllowCBOR))
	assert.False(t, now.Enabled(features.ClientsPreferCBOR))
	assert.True(t, now.Enabled(features.WatchListClient))
}

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFieldsAreAskedForWithWhatIsInsideAndWhatTheyAreInsideOf(t *testing.T) {
	t.Parallel()
	fields := []string{".spec.replicas", ".spec.replicasMore", ".spec.selector", `.spec.containers[name="web"].image`, `.spec.containers[name="web"].env[name="A"].value`}
	assert.Equal(t, fields, asked(fields, nil))
	assert.Equal(t, []string{".spec.replicas"}, asked(fields, []string{"spec.replicas"}))
	assert.Equal(t, []string{".spec.selector"}, asked(fields, []string{".spec.selector.matchLabels.app"}))
	assert.Equal(t, fields[3:], asked(fields, []string{".spec.containers"}))
	assert.Equal(t, fields[4:], asked(fields, []string{`.spec.containers[name="web"].env`}))
	assert.Empty(t, asked(fields, []string{".metadata"}))
}

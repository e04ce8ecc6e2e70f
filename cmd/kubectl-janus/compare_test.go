package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

// The contents are stored beside the Transaction of the plan, and are gone with it when the
// program runs.
func TestAProgramSeesTheWholeOfContentThatWasStored(t *testing.T) {
	e := harness.New(t)
	e.Start()
	t.Setenv(externalDiff, "diff -u -N")
	out, err := runs(t, e, nil, "plan", "-f", writeBundle(t, 12, 150_000), "--service-account", "deployer", "--timeout", "2m")
	var exit *exitError
	require.ErrorAs(t, err, &exit, out)
	require.Equal(t, exitDiffers, exit.code, out)
	whole := 0
	for line := range strings.Lines(out) {
		if text, found := strings.CutPrefix(line, "+  text: "); found && len(strings.Trim(text, "\"\n")) == 150_000 {
			whole++
		}
	}
	assert.Equal(t, 12, whole)
	assert.NotContains(t, out, "are cut")
	assert.Contains(t, out, "*** (after)")
	assert.NotContains(t, out, "hunter2")
	assert.Empty(t, e.Names("backup.janus.io/v1alpha1 Transaction", ""))
}

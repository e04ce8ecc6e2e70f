package size

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

// memory is that of a process.
type memory struct {
	t  testing.TB
	of *harness.Program
}

// peak is how many bytes the process had in memory at most since the last reset.
func (m memory) peak() int64 {
	m.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.of.PID()))
	require.NoError(m.t, err, "janusd has ended:\n%s", m.of.Log())
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	require.True(m.t, found, "%s", status)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(m.t, err)
	return kib << 10
}

// collected is what Go writes for each collection, with GODEBUG=gctrace=1. The last size is that of what
// is in use.
var collected = regexp.MustCompile(`(?m)^gc \d+ @.* \d+->\d+->(\d+) MB, `)

// live is how many MiB of objects were in use at most, of all the times that the collector has looked.
func (m memory) live() int {
	m.t.Helper()
	found := collected.FindAllStringSubmatch(m.of.Log(), -1)
	require.NotEmpty(m.t, found, "janusd says nothing of its collections")
	most := 0
	for _, one := range found {
		size, err := strconv.Atoi(one[1])
		require.NoError(m.t, err)
		most = max(most, size)
	}
	return most
}

// reset makes the peak what it is now.
func (m memory) reset() {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", m.of.PID()), []byte("5"), 0o600))
}

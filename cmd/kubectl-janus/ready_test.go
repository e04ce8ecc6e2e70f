package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

func making(apiVersion, kind, name, spec string) api.Change {
	return api.Change{
		Target:  api.Target{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: name},
		Type:    api.Patch,
		Content: &runtime.RawExtension{Raw: []byte(fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "spec": %s}`, apiVersion, kind, spec))},
	}
}

func TestWhatIsMadeIsWaitedForOnceAndInItsOrder(t *testing.T) {
	changes := []api.Change{
		making("v1", "PersistentVolumeClaim", "data", "{}"),
		making("apps/v1", "StatefulSet", "data", "{}"),
		making("apps/v1", "Deployment", "web", `{"paused": true}`),
		making("apps/v1", "Deployment", "admin", "{}"),
		making("apps/v1", "Deployment", "old", "{}"),
		making("example.com/v1", "Deployment", "other", "{}"),
		making("batch/v1", "Job", "migrate", "{}"),
		making("apps/v1", "Deployment", "web", "{}"),
		making("apps/v1", "Deployment", "old", `{"paused": true}`),
	}
	of := func(r readies) []string {
		got, err := r.awaits(changes)
		require.NoError(t, err)
		var out []string
		for _, c := range got {
			assert.Equal(t, api.Await, c.Type)
			assert.Equal(t, &api.ReadyWhen{Status: api.StatusReady, Timeout: ptr.To(api.Duration("1m30s"))}, c.ReadyWhen)
			out = append(out, c.Target.String())
		}
		return out
	}
	timeout := limit(90 * time.Second)
	assert.Equal(t, []string{"StatefulSet shop/data", "Deployment shop/web", "Deployment shop/admin"}, of(readies{waits: true, timeout: timeout}))
	assert.Empty(t, of(readies{timeout: timeout}))
	assert.Empty(t, of(readies{waits: true, off: true, timeout: timeout}))
}

// The page and the help name each kind that is waited for.
func TestThePageNamesWhatIsWaitedFor(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "kubectl-janus.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "| waited for, ")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n\n")
	help := newRun(newSession(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: io.Discard, ErrOut: io.Discard})).Long
	for gk := range waitedFor {
		assert.Contains(t, section, gk.Kind)
		assert.Contains(t, help, gk.Kind+"s")
	}
}

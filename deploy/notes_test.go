package deploy_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/testcluster"
)

// TestNotes reads what helm prints after an installation.
func TestNotes(t *testing.T) {
	helm, err := testcluster.Helm()
	require.NoError(t, err)
	for values, says := range map[string][]string{
		"": {"It runs the Transactions of all namespaces.", "kubectl rollout status deployment/janusd -n tools", "stays when the release is uninstalled"},
		"{crds: {keep: false}, replicas: 9, policies: {enabled: false, acknowledgeNone: true}}": {"more replicas than shards: 1 of them", "No policy of this release decides", "policies.otherNamespaces must name tools"},
		"ui: {enabled: true}":                                          {"--clusterrole=janus-ui-viewer --serviceaccount=tools:viewer", "port-forward -n tools service/janusd-ui 8443:443"},
		"janusd: {watchNamespaces: [a, b]}":                            {"of the namespaces a, b."},
		"namespaced: [{namespace: shop, serviceAccounts: [one, two]}]": {"as these ServiceAccounts and no others:\n  shop: one, two\n"},
	} {
		cmd := exec.CommandContext(t.Context(), helm, "install", "janus", chart, "--namespace=tools", "--dry-run=client", "--values=-")
		home := t.TempDir()
		cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + home + "/none"}
		cmd.Stdin = strings.NewReader(values)
		printed, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", printed)
		_, notes, found := strings.Cut(string(printed), "NOTES:\n")
		require.True(t, found, "%s", printed)
		for _, one := range says {
			assert.Contains(t, notes, one, "%s", values)
		}
		assert.Equal(t, strings.Contains(values, "keep: false"), !strings.Contains(notes, "stays when"), "%s", notes)
	}
}

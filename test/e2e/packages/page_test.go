package packages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

// elsewhereRun are commands of the page that other tests run, or that need a registry.
var elsewhereRun = map[string]string{
	"make image": "hack/image tests what it calls",
	"make cluster-up build                 # or use a cluster of your own":                                         "hack/cluster tests what it starts",
	"export KUBECONFIG=$PWD/dist/cluster/kubeconfig PATH=$PWD/bin:$PATH":                                           "it runs nothing",
	"kubectl apply -k deploy/crd":                                                                                  "it is what the clusters of all tests have",
	"bin/janusd --log-format=console":                                                                              "cmd/janusd runs janusd outside of a cluster",
	"crane push dist/janusd REGISTRY/janusd:TAG":                                                                   "needs a registry",
	"skopeo copy --all oci:dist/janusd:TAG docker://REGISTRY/janusd:TAG":                                           "needs a registry",
	"helm install janus oci://REGISTRY/charts/janus --version VERSION --namespace janus-system --create-namespace": "TestRelease pushes the chart to a registry, and renders it from there",
	"helm install janus deploy/chart/janus --namespace janus-system --values examples/namespaced/values.yaml":      "the chart's tests compare what it renders with examples/namespaced",
}

// TestThePageSaysWhatIsRun holds the commands of docs/install.md against those that the
// other tests of this package type.
func TestThePageSaysWhatIsRun(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "install.md"))
	require.NoError(t, err)
	var said []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		said = append(said, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}

	typed := map[string]bool{makeManifests: true, rollout: true, deleteTransactions: true, namespacedInstall[0]: true, namespacedInstall[1]: true}
	for _, command := range slices.Concat(fromTheArchive, byKrew, byKrewFromTheArchive) {
		typed[command] = true
	}
	for _, w := range ways {
		for _, command := range append(append(append(append([]string{}, w.install...), w.upgrade...), w.uninstall...), w.forget...) {
			typed[command] = true
		}
	}
	for _, command := range said {
		if elsewhereRun[command] == "" {
			assert.True(t, typed[command], "no test types %q", command)
		}
	}
	for command := range typed {
		assert.Contains(t, said, command)
	}
	for command := range elsewhereRun {
		assert.Contains(t, said, command)
	}
}

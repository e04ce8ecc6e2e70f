package rollback

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// An API that another server has, and that does not answer, keeps everybody from telling what is in a
// Namespace. Where the same Transaction has registered it, that is rolled back before.
func TestANamespaceIsRolledBackAfterAnAPIThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]int{
		"before the Namespace": {0, 1},
		"after it":             {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.ClusterWide()
			made, group := e.Namespace+"-made", strings.ReplaceAll(e.Namespace, "-", "")+".example.com"
			t.Cleanup(func() { e.DeleteNamespace(made) })
			e.Start()
			changes := []string{
				"- {name: api, type: Create, target: {apiVersion: apiregistration.k8s.io/v1, kind: APIService, name: v1." + group + "}, content: {spec: {group: " + group +
					", version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: missing, namespace: " + e.Namespace + "}}}}\n",
				"- {name: namespace, type: Create, target: {apiVersion: v1, kind: Namespace, name: " + made + "}, content: {}}\n",
			}
			spec := "\nchanges:\n"
			for _, n := range order {
				spec += changes[n]
			}
			txn := e.Run("txn", spec+"- {name: settings, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: settings, namespace: "+made+"}, content: {data: {a: b}}, "+
				"readyWhen: {expression: \"has(object.data.go)\", timeout: 5s}}\n")
			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			assert.Nil(t, e.Object("Namespace/"+made))
			assert.Nil(t, e.Object("apiregistration.k8s.io/v1 APIService/v1."+group))
			e.NothingLeft("txn")
		})
	}
}

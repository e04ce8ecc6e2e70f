package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"janus.io/janus/test/testcluster"
)

// The API server, with the definitions of the Prometheus Operator, takes the ServiceMonitor and the
// PrometheusRule of kustomize and of the chart, and prunes nothing of them.
func TestTheAPIServerTakesTheMonitoring(t *testing.T) {
	client, err := dynamic.NewForConfig(testcluster.Shared(t).Config())
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/prometheus-operator/prometheus-operator").Output()
	require.NoError(t, err, "find the Prometheus Operator: run go mod download in hack/olm")
	definitions := filepath.Join(strings.TrimSpace(string(out)), "example", "prometheus-operator-crd")
	kinds := map[string]dynamic.NamespaceableResourceInterface{}
	for kind, resource := range map[string]string{"ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"} {
		create(t, client, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "",
			manifest(t, read(t, filepath.Join(definitions, "monitoring.coreos.com_"+resource+".yaml"))))
		kinds[kind] = client.Resource(schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: resource})
		require.Eventually(t, func() bool {
			_, err := kinds[kind].Namespace("default").List(t.Context(), metav1.ListOptions{})
			return err == nil
		}, wait, poll)
	}

	texts := map[string][]string{"kustomize": {
		read(t, "../../deploy/monitoring/servicemonitor.yaml"), read(t, "../../deploy/monitoring/prometheusrule.yaml"),
	}}
	helm, err := testcluster.Helm()
	require.NoError(t, err)
	for _, values := range []string{
		"metrics: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}}",
		"metrics: {serviceMonitor: {enabled: true, labels: {release: prometheus}, interval: 1m, tlsConfig: {insecureSkipVerify: null, " +
			"serverName: janusd-metrics.janus-system.svc, ca: {secret: {name: janusd-metrics, key: ca.crt}}}}}",
		"metrics: {secure: false, acknowledgeInsecure: true, serviceMonitor: {enabled: true}, " +
			"prometheusRule: {enabled: true, labels: {release: prometheus}, runbookURL: 'https://wiki.example.com/janus'}}",
	} {
		command := exec.CommandContext(t.Context(), helm, "template", "janus", "../../deploy/chart/janus", "--namespace=janus-system", "--values=-")
		home := t.TempDir()
		command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
		command.Stdin = strings.NewReader(values)
		rendered, err := command.Output()
		require.NoError(t, err)
		texts[values] = strings.Split(string(rendered), "\n---\n")
	}
	for from, documents := range texts {
		seen := map[string]bool{}
		for _, document := range documents {
			o := manifest(t, document)
			resource, ok := kinds[o.GetKind()]
			if !ok {
				continue
			}
			seen[o.GetKind()] = true
			o.SetNamespace("default")
			stored, err := resource.Namespace("default").Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			require.NoError(t, err, "%s: %s", from, o.GetKind())
			assert.Equal(t, o.Object["spec"], stored.Object["spec"], "%s: %s", from, o.GetKind())
		}
		assert.True(t, seen["ServiceMonitor"], "%s", from)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

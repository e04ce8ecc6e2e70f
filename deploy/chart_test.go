package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

const chart = "chart/janus"

// template renders the chart with values, as of a release janus in janus-system, and returns
// what helm says if it refuses them.
func template(t *testing.T, values string, args ...string) (objects []*unstructured.Unstructured, refusal string) {
	t.Helper()
	helm, err := testcluster.Helm()
	require.NoError(t, err)
	args = append([]string{"template", "janus", chart, "--namespace=" + ownNamespace, "--values=-"}, args...)
	cmd := exec.CommandContext(t.Context(), helm, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	cmd.Stdin = strings.NewReader(values)
	var printed, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &said
	if err := cmd.Run(); err != nil {
		require.NotEmpty(t, said.String(), "%v", err)
		return nil, said.String()
	}
	objects, err = harness.Decode(printed.String())
	require.NoError(t, err)
	return objects, ""
}

// rendered is template for values that are right.
func rendered(t *testing.T, values string) []*unstructured.Unstructured {
	t.Helper()
	objects, refusal := template(t, values)
	require.Empty(t, refusal)
	return objects
}

// byName takes out what must differ between the packages, and returns the objects by kind
// and name. The Namespace is made by helm or by its user, not by the chart.
func byName(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			continue
		}
		object = object.DeepCopy()
		labels := object.GetLabels()
		for _, label := range []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version", "helm.sh/chart"} {
			delete(labels, label)
		}
		object.SetLabels(labels)
		annotations := object.GetAnnotations()
		delete(annotations, "helm.sh/resource-policy")
		object.SetAnnotations(annotations)
		name := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		require.NotContains(t, out, name, "it is there twice")
		out[name] = object.Object
	}
	return out
}

func TestTheChartRendersWhatKustomizeBuilds(t *testing.T) {
	const one = "namespaced: [{namespace: shop, serviceAccounts: [deploy-sa]}]\n"
	for _, c := range []struct {
		title, values string
		objects       []*unstructured.Unstructured
	}{
		{"all namespaces", "", build(t, ".")},
		{"one namespace", one, build(t, "overlays/namespaced")},
		{"an example", readFile(t, "../examples/namespaced/values.yaml"), build(t, "../examples/namespaced")},
		{"enforced locks", "enforcedLocks: {enabled: true}", withComponent(t, ".", "enforced")},
		{"enforced locks for one namespace", one + "enforcedLocks: {enabled: true}", withComponent(t, "overlays/namespaced", "enforced")},
		{"constrained impersonation", "constrainedImpersonation: {enabled: true}", withComponent(t, ".", "constrained/cluster")},
		{"constrained impersonation for one namespace", one + "constrainedImpersonation: {enabled: true}", withComponent(t, "overlays/namespaced", "constrained/namespaced")},
		{"namespaces by their labels", `janusd: {namespaceSelector: "janus.io/watch=true"}`, withComponent(t, ".", "namespaces")},
		{"packages", "packages: {enabled: true}", withComponent(t, ".", "packages")},
		{"a network policy", "networkPolicy: {enabled: true}", withComponent(t, ".", "network")},
		{"a priority level", "flowControl: {enabled: true}", withComponent(t, ".", "flowcontrol")},
		{"monitoring", "metrics: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboard: {enabled: true}}", withComponent(t, ".", "monitoring")},
		{"the page, all namespaces", "ui: {enabled: true}", withComponent(t, ".", "ui")},
		{"the page, one namespace", one + "ui: {enabled: true}", withComponent(t, "overlays/namespaced", "ui")},
	} {
		t.Run(c.title, func(t *testing.T) {
			built, chart := byName(t, c.objects), byName(t, rendered(t, c.values))
			require.NotEmpty(t, built)
			for name := range built {
				assert.Equal(t, built[name], chart[name], "%s", name)
			}
			for name := range chart {
				assert.Contains(t, built, name)
			}
		})
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// What helm recommends of a chart, and a catalogue shows of it, is there.
func TestHelmHasNothingToRecommend(t *testing.T) {
	helm, err := testcluster.Helm()
	require.NoError(t, err)
	lint := exec.CommandContext(t.Context(), helm, "lint", "--strict", chart)
	home := t.TempDir()
	lint.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	said, err := lint.CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.NotRegexp(t, `\[(INFO|WARNING|ERROR)\]`, string(said))
	var about struct {
		Icon     string   `json:"icon"`
		Keywords []string `json:"keywords"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, chart+"/Chart.yaml")), &about))
	page, found := strings.CutPrefix(about.Icon, "https://janus.io/janus/")
	require.True(t, found)
	assert.FileExists(t, "../"+page)
	assert.NotEmpty(t, about.Keywords)
}

// The labels that the comparison leaves out.
func TestEveryObjectOfTheChartIsLabelled(t *testing.T) {
	for _, object := range rendered(t, "extraLabels: {team: platform}") {
		labels := object.GetLabels()
		assert.Equal(t, "Helm", labels["app.kubernetes.io/managed-by"], "%s", object.GetName())
		assert.Equal(t, "janus", labels["app.kubernetes.io/instance"], "%s", object.GetName())
		assert.Equal(t, "platform", labels["team"], "%s", object.GetName())
		assert.NotEmpty(t, labels["helm.sh/chart"], "%s", object.GetName())
		assert.NotEmpty(t, labels["app.kubernetes.io/version"], "%s", object.GetName())
	}
}

func TestTheChartRefusesWrongValues(t *testing.T) {
	for values, refusal := range map[string]string{
		"replica: 3":                                                            "additional properties 'replica' not allowed",
		"replicas: two":                                                         "got string, want integer",
		"image: {tag: 'a b'}":                                                   "does not match pattern",
		"image: {digest: latest}":                                               "does not match pattern",
		"janusd: {shards: 257}":                                                 "maximum: got 257, want 256",
		"janusd: {workers: 0}":                                                  "minimum: got 0, want 1",
		"janusd: {locks: tables}":                                               "value must be one of",
		"janusd: {resync: 10}":                                                  "want null or string",
		"janusd: {logLevel: loud}":                                              "value must be one of",
		"policies: {otherNamespaces: [A]}":                                      "does not match pattern",
		"policies: {enabled: false, otherNamespaces: [a]}":                      "policies.enabled is false",
		"janusd: {watchNamespaces: [A]}":                                        "does not match pattern",
		"namespaced: [{namespace: shop}]":                                       "missing property 'serviceAccounts'",
		"namespaced: [{namespace: shop, serviceAccounts: []}]":                  "minItems: got 0, want 1",
		"metrics: {port: 80}":                                                   "minimum: got 80, want 1,024",
		"metrics: {port: 8081}":                                                 "'not' failed",
		"podDisruptionBudget: {maxUnavailable: 0}":                              "'oneOf' failed",
		"{ui: {enabled: true}, metrics: {enabled: false}}":                      "ui.enabled needs metrics.enabled and metrics.secure",
		"{ui: {enabled: true}, metrics: {secure: false}}":                       "ui.enabled needs metrics.enabled and metrics.secure",
		"extraLabels: {app.kubernetes.io/name: mine}":                           "'not' failed",
		"janusd: {extraArgs: [workers=3]}":                                      "does not match pattern",
		"flowControl: {nominalConcurrencyShares: 0}":                            "minimum: got 0, want 1",
		"metrics: {prometheusRule: {runbookURL: alerts}}":                       "does not match pattern",
		"metrics: {service: {enabled: false}, serviceMonitor: {enabled: true}}": "metrics.serviceMonitor.enabled needs metrics.enabled and metrics.service.enabled",
		"policies: {enabled: false}":                                            "set policies.acknowledgeNone to true if that is wanted",
		"metrics: {secure: false}":                                              "set metrics.acknowledgeInsecure to true if that is wanted",
		"janusd: {pprofBindAddress: '0.0.0.0:6060'}":                            "does not match pattern",
		"janusd: {pprofBindAddress: ':6060'}":                                   "does not match pattern",
		"janusd: {pprofBindAddress: 'localhost.example.com:6060'}":              "does not match pattern",
		"janusd: {pprofBindAddress: '[::]:6060'}":                               "does not match pattern",
		"{janusd: {watchNamespaces: [a]}, namespaced: [{namespace: b, serviceAccounts: [c]}]}":                             "both name namespaces",
		"janusd: {watchNamespaces: [a], namespaceSelector: a=b}":                                                           "leave all but one of them empty",
		"{janusd: {namespacesConfigMap: a}, namespaced: [{namespace: b, serviceAccounts: [c]}]}":                           "leave all but one of them empty",
		"janusd: {namespaceSelector: ''}":                                                                                  "minLength: got 0, want 1",
		"janusd: {kubeApiQps: -1}":                                                                                         "minimum: got -1, want 0",
		"janusd: {retryBaseDelay: 1}":                                                                                      "want null or string",
		"namespaced: [{namespace: b, serviceAccounts: [c]}, {namespace: b, serviceAccounts: [d]}]":                         "named twice",
		"{constrainedImpersonation: {enabled: true}, enforcedLocks: {enabled: true}}":                                      "constrainedImpersonation.enabled and enforcedLocks.enabled cannot both be true",
		"{constrainedImpersonation: {enabled: true}, packages: {enabled: true}}":                                           "constrainedImpersonation.enabled and packages.enabled cannot both be true",
		"constrainedImpersonation: {namespaces: [a]}":                                                                      "have no effect unless",
		"constrainedImpersonation: {enabled: true, kinds: [{group: '', resources: ['*']}]}":                                "does not match pattern",
		"constrainedImpersonation: {enabled: true, kinds: [{group: '', resources: [pods/exec]}]}":                          "does not match pattern",
		"{constrainedImpersonation: {enabled: true, namespaces: [a]}, namespaced: [{namespace: b, serviceAccounts: [c]}]}": "namespaced names them already",
	} {
		_, said := template(t, values)
		assert.Contains(t, said, refusal, "%s", values)
	}
}

func TestTheChartRefusesAnOldCluster(t *testing.T) {
	_, said := template(t, "", "--kube-version=1.32.9")
	assert.Contains(t, said, "Kubernetes 1.33 or newer is needed, for a validation rule of the CRD; this is v1.32.9")
	_, said = template(t, "constrainedImpersonation: {enabled: true}", "--kube-version=1.35.2")
	assert.Contains(t, said, "constrainedImpersonation.enabled takes Kubernetes 1.36 or newer; this is v1.35.2")
	for _, version := range []string{"1.33.0", "1.33.0-gke.1", "2.0.0"} {
		_, said = template(t, "", "--kube-version="+version)
		assert.Empty(t, said, "%s", version)
	}
}

package deploy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"janus.io/janus/test/harness"
)

// Each value that has an effect on what is rendered has it.
func TestValuesOfTheChart(t *testing.T) {
	for _, c := range []struct {
		values string
		want   []string
	}{
		{"image: {repository: r.example.com/janusd, tag: v1}", []string{"image: r.example.com/janusd:v1\n"}},
		{"image: {tag: v1, digest: 'sha256:" + strings.Repeat("a", 64) + "'}", []string{"image: janusd@sha256:" + strings.Repeat("a", 64)}},
		{"image: {pullPolicy: Always, pullSecrets: [{name: key}]}", []string{"imagePullPolicy: Always", "imagePullSecrets:\n", "- name: key"}},
		{"replicas: 5", []string{"replicas: 5"}},
		{"priorityClassName: system-cluster-critical", []string{"priorityClassName: system-cluster-critical"}},
		{"{nodeSelector: {a: b}, tolerations: [{key: k}], affinity: {nodeAffinity: {}}, podAnnotations: {p: q}}",
			[]string{"nodeSelector:\n        a: b", "tolerations:\n      - key: k", "nodeAffinity: {}", "p: q"}},
		{"metrics: {port: 9000}", []string{"- --metrics-bind-address=:9000", "containerPort: 9000"}},
		{"metrics: {enabled: false}", []string{"- --metrics-bind-address=0"}},
		{"metrics: {secure: false, acknowledgeInsecure: true}", []string{"- --metrics-secure=false"}},
		{"metrics: {enabled: false, secure: false}", []string{"- --metrics-bind-address=0"}},
		{"janusd: {pprofBindAddress: '127.0.0.1:6060'}", []string{"- --pprof-bind-address=127.0.0.1:6060"}},
		{"janusd: {pprofBindAddress: '[::1]:6060'}", []string{"- --pprof-bind-address=[::1]:6060"}},
		{"metrics: {certificateSecret: tls}", []string{"- --metrics-cert-dir=/etc/janusd/metrics", "secretName: tls", "mountPath: /etc/janusd/metrics"}},
		{"extraLabels: {team: a}", []string{"  name: janusd\n", "      labels:\n        app.kubernetes.io/name: janusd\n        team: a\n"}},
		{"resources: {limits: {memory: 1Gi}}", []string{"memory: 1Gi"}},
		{"topologySpreadConstraints: [{topologyKey: zone}]", []string{"topologySpreadConstraints:\n      - topologyKey: zone\n"}},
		{"janusd: {workers: 2, extraArgs: ['--workers=3', '--log-level=debug']}", []string{"- --workers=2\n", "- --workers=3\n        - --log-level=debug\n"}},
	} {
		in := installation{objects: rendered(t, c.values)}
		text, err := yaml.Marshal(in.find(t, "Deployment", "janusd").Object)
		require.NoError(t, err)
		for _, want := range c.want {
			assert.Contains(t, string(text), want, "%s", c.values)
		}
	}

	for _, c := range []struct{ values, kind, name, want string }{
		{"metrics: {serviceMonitor: {enabled: true, labels: {release: prometheus}, interval: 1m}}", "ServiceMonitor", "janusd", "    release: prometheus\n"},
		{"metrics: {serviceMonitor: {enabled: true, interval: 1m}}", "ServiceMonitor", "janusd", "  - bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token\n    interval: 1m\n"},
		{"metrics: {serviceMonitor: {enabled: true, tlsConfig: {insecureSkipVerify: null, serverName: a}}}", "ServiceMonitor", "janusd", "    tlsConfig:\n      serverName: a\n"},
		{"metrics: {secure: false, acknowledgeInsecure: true, serviceMonitor: {enabled: true}}", "ServiceMonitor", "janusd", "  - interval: 30s\n    path: /metrics\n    port: metrics\n    scheme: http\n  selector"},
		{"metrics: {prometheusRule: {enabled: true, labels: {release: prometheus}}}", "PrometheusRule", "janusd", "    release: prometheus\n"},
		{"metrics: {prometheusRule: {enabled: true, runbookURL: 'https://wiki.example.com/janus'}}", "PrometheusRule", "janusd", "runbook_url: https://wiki.example.com/janus#janusabsent\n"},
		{"metrics: {dashboard: {enabled: true, labels: {grafana_dashboard: null, team: a}}}", "ConfigMap", "janus-dashboard", "    team: a\n"},
		{"flowControl: {enabled: true, nominalConcurrencyShares: 7}", "PriorityLevelConfiguration", "janusd-janus-system", "nominalConcurrencyShares: 7\n"},
	} {
		in := installation{objects: rendered(t, c.values)}
		text, err := yaml.Marshal(in.find(t, c.kind, c.name).Object)
		require.NoError(t, err)
		assert.Contains(t, string(text), c.want, "%s", c.values)
	}

	for values, gone := range map[string]string{
		"crds: {install: false}":                            "CustomResourceDefinition",
		"policies: {enabled: false, acknowledgeNone: true}": "ValidatingAdmissionPolicy",
		"podDisruptionBudget: {enabled: false}":             "PodDisruptionBudget",
		"metrics: {service: {enabled: false}}":              "Service",
		"metrics: {enabled: false}":                         "Service",
	} {
		for _, object := range rendered(t, values) {
			assert.NotEqual(t, gone, object.GetKind(), "%s", values)
		}
	}
	for _, object := range rendered(t, "userRoles: {enabled: false}") {
		assert.NotContains(t, []string{"janus-approver", "janus-editor", "janus-viewer", "janus-metrics-reader"}, object.GetName())
	}
	for keep, want := range map[string]string{"true": "keep", "false": ""} {
		in := installation{objects: rendered(t, "crds: {keep: "+keep+"}")}
		crd := in.find(t, "CustomResourceDefinition", "transactions.backup.janus.io")
		assert.Equal(t, want, crd.GetAnnotations()["helm.sh/resource-policy"])
	}
}

// TestTheStorageVersionIsChosen renders the chart, and builds the kustomization of docs/storage-version.md.
func TestTheStorageVersionIsChosen(t *testing.T) {
	for title, c := range map[string]struct {
		objects []*unstructured.Unstructured
		stored  string
	}{
		"the chart":                 {rendered(t, "{}"), "v1alpha1"},
		"the chart, with the value": {rendered(t, "crds: {storageVersion: v1beta1}"), "v1beta1"},
		"the chart, upgraded with the values of a release from before it": {rendered(t, "crds: {storageVersion: null}"), "v1alpha1"},
		"the manifests":                 {build(t, "."), "v1alpha1"},
		"the kustomization of the page": {kustomizationOf(t, "storage-version.md"), "v1beta1"},
	} {
		crd := into[apiextensionsv1.CustomResourceDefinition](t, installation{objects: c.objects}.find(t, "CustomResourceDefinition", "transactions.backup.janus.io"))
		require.Len(t, crd.Spec.Versions, 2)
		for _, version := range crd.Spec.Versions {
			assert.Equal(t, version.Name == c.stored, version.Storage, "%s: %s", title, version.Name)
			assert.True(t, version.Served)
		}
	}
}

// besides are the flags of janusd that the chart sets by itself, or has other values for.
var besides = []string{"kubeconfig", "namespace", "leader-elect", "metrics-bind-address", "metrics-secure", "health-probe-bind-address", "version"}

// TestEveryFlagOfJanusdIsAValueOfTheChart sets every one, and has janusd accept what the
// chart makes of them.
func TestEveryFlagOfJanusdIsAValueOfTheChart(t *testing.T) {
	janusd := harness.BuildJanusd(t)
	help, err := exec.CommandContext(t.Context(), janusd, "--help").Output()
	require.NoError(t, err)
	var flags []string
	for _, match := range regexp.MustCompile(`(?m)^ {6}--([a-z-]+)`).FindAllStringSubmatch(string(help), -1) {
		flags = append(flags, match[1])
	}
	in := installation{objects: rendered(t, `janusd: {shards: 3, leaderElectLeaseDuration: 20s, watchNamespaces: [a, b], workers: 7, locks: namespaces, keepCompleted: 0,
		keepFailed: 5, revisionHistoryLimit: 1000, beforeImagesLimit: 1Gi, resync: "0", retryBaseDelay: 200ms, retryMaxDelay: 1m,
		kubeApiQps: 12.5, kubeApiBurst: 50, selector: "team in (shop,orders)", logLevel: debug, logFormat: console, sensitiveKinds: [Key.example.com],
		pprofBindAddress: "localhost:6060", tracingEndpoint: "http://collector:4318"}
metrics: {certificateSecret: metrics-tls}
enforcedLocks: {enabled: true}
packages: {enabled: true, crossplaneNamespace: upbound-system, historyLimit: 0}
ui: {enabled: true}`)}
	containers, _, err := unstructured.NestedSlice(in.find(t, "Deployment", "janusd").Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	require.NoError(t, err)
	set := append([]string{}, besides...)
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if name != "leader-elect" {
			set = append(set, name)
		}
	}
	assert.ElementsMatch(t, flags, set)
	assert.Contains(t, args, "--keep-completed=0")
	assert.Contains(t, args, "--locks=namespaces")
	assert.Contains(t, args, "--watch-namespaces=a,b")
	assert.Contains(t, args, "--revision-history-limit=1000")
	assert.Contains(t, args, "--kube-api-qps=12.5")
	assert.Contains(t, args, "--selector=team in (shop,orders)")

	// janusd looks at its flags before it looks for a cluster, and ends with 2 if they are wrong.
	run := exec.CommandContext(t.Context(), janusd, append(args, "--kubeconfig="+filepath.Join(t.TempDir(), "none"))...)
	said, err := run.CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, 1, run.ProcessState.ExitCode(), "%s", said)
	assert.Contains(t, string(said), "none")
}

// The schema knows every value that there is a default for, and no other.
func TestTheSchemaKnowsTheValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	require.NoError(t, err)
	var values map[string]any
	require.NoError(t, yaml.Unmarshal(text, &values))
	text, err = os.ReadFile(filepath.Join(chart, "values.schema.json"))
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(text, &schema))
	delete(schema["properties"].(map[string]any), "global")
	sameKeys(t, "values", schema, values)
}

func sameKeys(t *testing.T, path string, schema map[string]any, values map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for name, value := range values {
		property, known := properties[name].(map[string]any)
		if !assert.True(t, known, "%s.%s is in values.yaml alone", path, name) {
			continue
		}
		if inner, ok := value.(map[string]any); ok && property["properties"] != nil && path != "values.resources" {
			sameKeys(t, path+"."+name, property, inner)
		}
	}
	for name := range properties {
		if path+"."+name != "values.resources.claims" {
			assert.Contains(t, values, name, "%s.%s is in values.schema.json alone", path, name)
		}
	}
}

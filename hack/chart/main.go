package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A template of the chart and the manifests that it is made of.
type template struct {
	name    string
	sources []string
	// guard opens the block that the template is in, which an end closes.
	guard string
	// replace has what is to be replaced and by what, in turn. Each must be there.
	replace []string
	// braces says that the manifest has braces of another language, which the chart leaves as
	// they are.
	braces bool
	// above is what the source, which is no manifest then, is the content of.
	above string
}

const namespace = "{{ $.Release.Namespace }}"

// pageRights is what deploy/ui/rights.yaml adds to a role.
const pageRights = `{{- if $.Values.ui.enabled }}
# What the page shows of a Transaction beside itself.
- apiGroups: [""]
  resources: [events]
  verbs: [list]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [list]
{{- end }}
`

// actsAs is by what right janusd acts as the listed ServiceAccounts of a namespace.
const actsAs = `{{- if $.Values.constrainedImpersonation.enabled }}
- apiGroups: [authentication.k8s.io]
  resources: [serviceaccounts]
  verbs: ["impersonate:serviceaccount"]
{{- else }}
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [impersonate]
{{- end }}
`

var templates = []template{
	{
		name: "crd.yaml", sources: []string{"crd/backup.janus.io_transactions.yaml"}, guard: "if .Values.crds.install",
		replace: []string{
			"\nmetadata:\n  annotations:\n", "\nmetadata:\n  labels:\n  annotations:\n" +
				"    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n",
			"\n    storage: true\n", "\n    storage: {{ ne .Values.crds.storageVersion \"v1beta1\" }}\n",
			"\n    storage: false\n", "\n    storage: {{ eq .Values.crds.storageVersion \"v1beta1\" }}\n",
		},
	},
	{
		name: "policies.yaml", guard: "if .Values.policies.enabled",
		sources: []string{
			"policies/transaction-approvals.yaml", "policies/transaction-contents.yaml", "policies/transaction-deletion.yaml", "policies/transaction-identity.yaml", "policies/transaction-locks.yaml", "policies/transaction-records.yaml",
			"policies/transaction-settings.yaml", "policies/transaction-spec.yaml", "policies/transaction-status.yaml", "policies/transaction-targets.yaml", "policies/transaction-tokens.yaml",
		},
		replace: []string{`"['system:serviceaccount:janus-system:janusd']"`, `{{ include "janus.janusds" $ | quote }}`},
	},
	{
		name: "enforced-crd.yaml", sources: []string{"enforced/objects/backup.janus.io_locktables.yaml"},
		guard:   "if and .Values.enforcedLocks.enabled .Values.crds.install",
		replace: []string{"\nmetadata:\n  annotations:\n", "\nmetadata:\n  labels:\n  annotations:\n"},
	},
	{
		name: "enforced.yaml", sources: []string{"enforced/objects/policy.yaml", "enforced/objects/rbac.yaml"},
		guard: "if .Values.enforcedLocks.enabled",
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n",
			"janusd-enforced-locks-janus-system\n", "janusd-enforced-locks-" + namespace + "\n",
		},
	},
	{
		name: "packages-crd.yaml", sources: []string{"packages/objects/pkg.janus.io_packagetransactions.yaml"}, guard: "if .Values.packages.enabled",
		replace: []string{
			"\nmetadata:\n  annotations:\n", "\nmetadata:\n  labels:\n  annotations:\n" +
				"    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n",
		},
	},
	{
		name: "packages.yaml", sources: []string{"packages/objects/rbac.yaml", "packages/objects/users.yaml", "packages/objects/policy.yaml"},
		guard: "if .Values.packages.enabled",
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n",
			"janusd-packages-janus-system\n", "janusd-packages-" + namespace + "\n",
		},
	},
	{
		name: "namespaces.yaml", sources: []string{"namespaces/objects/rbac.yaml"}, guard: "if .Values.janusd.namespaceSelector",
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n",
			"janusd-namespaces-janus-system\n", "janusd-namespaces-" + namespace + "\n",
		},
	},
	{
		name: "constrained.yaml", sources: []string{"constrained/objects/asks.yaml", "constrained/objects/targets.yaml"},
		guard:   "if .Values.constrainedImpersonation.enabled",
		replace: []string{"namespace: janus-system\n", "namespace: " + namespace + "\n", "-janus-system\n", "-" + namespace + "\n"},
	},
	{
		name: "constrained-cluster.yaml", sources: []string{"constrained/cluster/bindings/acts-as.yaml"},
		guard:   "if and .Values.constrainedImpersonation.enabled (not .Values.namespaced)",
		replace: []string{"-janus-system\n", "-" + namespace + "\n"},
	},
	{name: "users.yaml", sources: []string{"rbac/base/users.yaml", "rbac/base/metrics.yaml"}, guard: "if .Values.userRoles.enabled"},
	{
		name: "own-namespace.yaml", sources: []string{"rbac/base/leader-election.yaml", "rbac/base/own-namespace.yaml", "rbac/base/settings.yaml"}, guard: "if true",
		replace: []string{"namespace: janus-system\n", "namespace: " + namespace + "\n"},
	},
	{
		name: "rbac-cluster.yaml", sources: []string{"rbac/cluster/janusd.yaml"}, guard: "if not .Values.namespaced",
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n",
			"\n  verbs: [get, impersonate]\n", "\n  verbs: {{ ternary \"[get]\" \"[get, impersonate]\" .Values.constrainedImpersonation.enabled }}\n",
			"\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding", "\n" + pageRights + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding",
		},
	},
	{
		name: "rbac-namespaced.yaml", sources: []string{"rbac/namespaced/janusd.yaml"}, guard: "range .Values.namespaced",
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n",
			"namespace: shop\n", "namespace: {{ .namespace }}\n",
			"- apiGroups: [\"\"]\n  resources: [serviceaccounts]\n  verbs: [impersonate]\n", actsAs,
			"  - deploy-sa\n", "  {{- toYaml .serviceAccounts | nindent 2 }}\n",
			"\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding", "\n" + pageRights + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding",
		},
	},
	{
		name: "rbac-beside.yaml", guard: "if .Values.namespaced",
		sources: []string{"overlays/namespaced/metrics.yaml"},
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n",
			"janusd-metrics-janus-system\n", "janusd-metrics-" + namespace + "\n",
		},
	},
	{
		name: "networkpolicy.yaml", sources: []string{"network/networkpolicy.yaml"}, guard: "if .Values.networkPolicy.enabled",
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n", partOf, "",
			"      port: metrics\n", "      port: metrics\n    {{- with .Values.networkPolicy.metricsFrom }}\n    from:\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n",
		},
	},
	{
		name: "flowcontrol.yaml", sources: []string{"flowcontrol/flowschema.yaml"}, guard: "if .Values.flowControl.enabled",
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n", partOf, "",
			"name: janusd-janus-system\n", "name: janusd-" + namespace + "\n",
			"nominalConcurrencyShares: 20\n", "nominalConcurrencyShares: {{ .Values.flowControl.nominalConcurrencyShares }}\n",
		},
	},
	{
		name: "servicemonitor.yaml", sources: []string{"monitoring/servicemonitor.yaml"}, guard: "if .Values.metrics.serviceMonitor.enabled",
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n",
			partOf, "    {{- with .Values.metrics.serviceMonitor.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n",
			"    scheme: https\n", "    scheme: {{ ternary \"https\" \"http\" .Values.metrics.secure }}\n",
			"interval: 30s\n", "interval: {{ .Values.metrics.serviceMonitor.interval }}\n",
			"    bearerTokenFile:", "    {{- if .Values.metrics.secure }}\n    bearerTokenFile:",
			"      insecureSkipVerify: true\n", "      {{- toYaml .Values.metrics.serviceMonitor.tlsConfig | nindent 6 }}\n    {{- end }}\n",
		},
	},
	{
		name: "prometheusrule.yaml", sources: []string{"monitoring/prometheusrule.yaml"}, guard: "if .Values.metrics.prometheusRule.enabled", braces: true,
		replace: []string{
			"namespace: janus-system\n", "namespace: " + namespace + "\n",
			partOf, "    {{- with .Values.metrics.prometheusRule.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n",
			"runbook_url: https://janus.io/janus/docs/runbooks/alerts.md#", "runbook_url: {{ $.Values.metrics.prometheusRule.runbookURL }}#",
		},
	},
	{
		name: "dashboard.yaml", sources: []string{"monitoring/dashboard.json"}, guard: "if .Values.metrics.dashboard.enabled", braces: true,
		above: `apiVersion: v1
kind: ConfigMap
metadata:
  name: janus-dashboard
  namespace: ` + namespace + `
  labels:
    app.kubernetes.io/name: janusd
    {{- toYaml .Values.metrics.dashboard.labels | nindent 4 }}
data:
  janus.json: |
`,
	},
	{
		name: "ui-service.yaml", sources: []string{"ui/service.yaml"}, guard: "if .Values.ui.enabled",
		replace: []string{"namespace: janus-system\n", "namespace: " + namespace + "\n", partOf, ""},
	},
	{
		name: "ui-viewer.yaml", sources: []string{"ui/viewer.yaml"}, guard: "if and .Values.ui.enabled .Values.userRoles.enabled",
		replace: []string{partOf, ""},
	},
}

// partOf is among the labels that the chart gives every object.
const partOf = "    app.kubernetes.io/part-of: janus\n"

func main() {
	deploy := flag.String("deploy", "deploy", "`directory` of the manifests")
	output := flag.String("output", "deploy/chart/janus/templates", "`directory` of the templates")
	readme := flag.String("readme", "deploy/chart/janus/README.md", "`file` of the values")
	flag.Parse()
	if err := errors.Join(write(*deploy, *output), writeReadme(*deploy, *readme)); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// write makes all templates.
func write(deploy, output string) error {
	for _, t := range templates {
		text, err := t.render(deploy)
		if err != nil {
			return fmt.Errorf("make %s: %w", t.name, err)
		}
		if err := os.WriteFile(filepath.Join(output, t.name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("make %s: %w", t.name, err)
		}
	}
	return nil
}

func (t template) render(deploy string) (string, error) {
	text, err := t.manifest(deploy)
	if err != nil {
		return "", err
	}
	for i := 0; i < len(t.replace); i += 2 {
		if !strings.Contains(text, t.replace[i]) {
			return "", fmt.Errorf("%s: there is no %q", strings.Join(t.sources, ", "), t.replace[i])
		}
		text = strings.ReplaceAll(text, t.replace[i], t.replace[i+1])
	}
	const labels = "\n  labels:\n"
	text = strings.ReplaceAll(text, labels, labels+"    {{- include \"janus.labels\" $ | nindent 4 }}\n")
	return fmt.Sprintf("{{- /* Made by make generate from deploy/%s. Edit that. */}}\n{{- %s }}\n%s{{- end }}\n",
		strings.Join(t.sources, ", deploy/"), t.guard, text), nil
}

// manifest is the text that becomes a template.
func (t template) manifest(deploy string) (string, error) {
	var documents []string
	for _, source := range t.sources {
		text, err := os.ReadFile(filepath.Join(deploy, source))
		if err != nil {
			return "", err
		}
		documents = append(documents, strings.TrimPrefix(string(text), "---\n"))
	}
	text := strings.Join(documents, "---\n")
	switch {
	case t.braces:
		text = strings.ReplaceAll(text, "{{", "{{ `{{` }}")
	case strings.Contains(text, "{{"):
		return "", fmt.Errorf("%s: braces would be taken for those of a template", strings.Join(t.sources, ", "))
	}
	if t.above != "" {
		text = t.above + "    " + strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\n    "), "    ")
	}
	return "---\n" + text, nil
}

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

// ruleGroup and rule are what is looked at of a PrometheusRule.
type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// panel is what is looked at of a panel of the dashboard.
type panel struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

// monitored is deploy with the component of monitoring.
func monitored(t *testing.T) installation {
	t.Helper()
	return installation{objects: withComponent(t, ".", "monitoring")}
}

// withComponent builds a directory with a component, both of deploy.
func withComponent(t testing.TB, directory, component string) []*unstructured.Unstructured {
	t.Helper()
	here, err := os.Getwd()
	require.NoError(t, err)
	overlay := t.TempDir()
	base, err := filepath.Rel(overlay, here)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(
		`{resources: ["`+filepath.Join(base, directory)+`"], components: ["`+filepath.Join(base, component)+`"]}`), 0o600))
	return build(t, overlay)
}

// alertRules returns the groups of the PrometheusRule.
func alertRules(t *testing.T) []ruleGroup {
	t.Helper()
	object := monitored(t).find(t, "PrometheusRule", "janusd")
	spec, err := yaml.Marshal(object.Object["spec"])
	require.NoError(t, err)
	var rules struct{ Groups []ruleGroup }
	require.NoError(t, yaml.UnmarshalStrict(spec, &rules), "only what these tests look at")
	require.NotEmpty(t, rules.Groups)
	return rules.Groups
}

// promtool runs promtool, which make puts into bin, or which is installed.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	path, err := filepath.Abs("../bin/promtool")
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		path, err = exec.LookPath("promtool")
		require.NoError(t, err, "promtool is needed: run make promtool")
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	require.NoError(t, err, "promtool %s: %s", strings.Join(args, " "), out)
}

// rulesFile writes a file of rules and returns its directory.
func rulesFile(t *testing.T, groups ...ruleGroup) string {
	t.Helper()
	dir := t.TempDir()
	content, err := yaml.Marshal(map[string]any{"groups": groups})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), content, 0o600))
	return dir
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	groups := alertRules(t)
	dir := rulesFile(t, groups...)
	promtool(t, dir, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")

	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/alerts")))
	files, err := filepath.Glob("testdata/alerts/*.yaml")
	require.NoError(t, err)
	fires, quiet := map[string]bool{}, map[string]bool{}
	run := []string{"test", "rules"}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		run = append(run, filepath.Base(file))
		var cases struct {
			Tests []struct {
				AlertRuleTest []struct {
					Alertname string `json:"alertname"`
					ExpAlerts []any  `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			} `json:"tests"`
		}
		require.NoError(t, yaml.Unmarshal(content, &cases))
		for _, c := range cases.Tests {
			for _, a := range c.AlertRuleTest {
				if len(a.ExpAlerts) > 0 {
					fires[a.Alertname] = true
				} else {
					quiet[a.Alertname] = true
				}
			}
		}
	}
	promtool(t, dir, run...)
	for _, group := range groups {
		for _, r := range group.Rules {
			assert.True(t, fires[r.Alert], "no case shows that %s fires", r.Alert)
			assert.True(t, quiet[r.Alert], "no case shows when %s does not fire", r.Alert)
			delete(fires, r.Alert)
		}
	}
	assert.Empty(t, fires, "cases of alerts that are not there")
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	page, err := os.ReadFile("../docs/runbooks/alerts.md")
	require.NoError(t, err)
	sections := map[string]string{}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	for _, group := range alertRules(t) {
		for _, r := range group.Rules {
			assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
			assert.NotEmpty(t, r.Annotations["description"], r.Alert)
			assert.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
			assert.Equal(t, "https://janus.io/janus/docs/runbooks/alerts.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
			text := sections[r.Alert]
			assert.Contains(t, strings.ToLower(text), "\n"+r.Labels["severity"]+". ", "the page has the severity of %s", r.Alert)
			assert.Contains(t, text, "```sh\nkubectl ", "the page says how to look at %s", r.Alert)
			delete(sections, r.Alert)
		}
	}
	assert.Empty(t, sections, "sections of alerts that are not there")
}

// TestTheOrderOfAnUpgradeWorks runs what the page says, from the parts to the whole.
func TestTheOrderOfAnUpgradeWorks(t *testing.T) {
	install(t)
	page, err := os.ReadFile("../docs/upgrade.md")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^ *(kubectl (?:get|apply -k) .*)$`).FindAllStringSubmatch(string(page), -1)
	require.Len(t, commands, 7)
	shell, err := testcluster.Shared(t).NewShell("default", "..")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, shell.Close()) })
	for _, command := range commands {
		line := command[1]
		if strings.HasPrefix(line, "kubectl apply") {
			// The test applies it all as another manager.
			line += " --server-side --force-conflicts"
		}
		said, err := shell.Run(t.Context(), line)
		assert.NoError(t, err, said)
	}
}

// TestCommandsOfTheRunbookWork runs those that look at what a cluster without Nodes has.
func TestCommandsOfTheRunbookWork(t *testing.T) {
	in := withPackages(t)
	namespace := testcluster.Namespace(t)
	txn := transaction("default")
	txn.SetGenerateName("")
	txn.SetName("release")
	_, err := in.dynamic.Resource(v1alpha1.Resource).Namespace(namespace).Create(t.Context(), txn, metav1.CreateOptions{})
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/runbooks/alerts.md")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^kubectl (?:get|describe|events) .*$`).FindAllString(string(page), -1)
	require.Greater(t, len(commands), 20)
	shell, err := testcluster.Shared(t).NewShell(namespace, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, shell.Close()) })
	seen := map[string]bool{}
	for _, line := range commands {
		line, _, _ = strings.Cut(line, " | ")
		if seen[line] {
			continue
		}
		seen[line] = true
		said, err := shell.Run(t.Context(), strings.NewReplacer("NAMESPACE", namespace, "NAME", "release").Replace(line))
		assert.NoError(t, err, said)
	}
}

func TestTheServiceMonitorFindsTheService(t *testing.T) {
	in := monitored(t)
	monitor := in.find(t, "ServiceMonitor", "janusd")
	service := in.find(t, "Service", "janusd-metrics")
	spec, err := yaml.Marshal(monitor.Object["spec"])
	require.NoError(t, err)
	var looked struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct{ Port, Scheme, Path string }
	}
	require.NoError(t, yaml.Unmarshal(spec, &looked))
	assert.Subset(t, service.GetLabels(), looked.Selector.MatchLabels)
	assert.Equal(t, service.GetNamespace(), monitor.GetNamespace())
	require.Len(t, looked.Endpoints, 1)
	assert.Equal(t, struct{ Port, Scheme, Path string }{"metrics", "https", "/metrics"}, looked.Endpoints[0])
}

func TestTheDashboardIsSound(t *testing.T) {
	config := monitored(t).find(t, "ConfigMap", "janus-dashboard")
	assert.Equal(t, "1", config.GetLabels()["grafana_dashboard"])
	data, _ := config.Object["data"].(map[string]any)
	text, _ := data["janus.json"].(string)
	var dashboard struct {
		Title, UID string
		Panels     []panel
	}
	require.NoError(t, json.Unmarshal([]byte(text), &dashboard))
	assert.Equal(t, "Janus", dashboard.Title)
	titles := map[string]bool{}
	group := ruleGroup{Name: "dashboard"}
	for _, p := range dashboard.Panels {
		assert.NotEmpty(t, p.Title)
		assert.False(t, titles[p.Title], "two panels are called %s", p.Title)
		titles[p.Title] = true
		if p.Type == "row" {
			continue
		}
		assert.NotEmpty(t, p.Description, p.Title)
		assert.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
		assert.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			assert.NotEmpty(t, target.LegendFormat, p.Title)
			group.Rules = append(group.Rules, rule{Record: "panel:expression", Expr: strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")})
		}
	}
	require.Greater(t, len(group.Rules), 15)
	promtool(t, rulesFile(t, group), "check", "rules", "--lint=none", "rules.yaml")
}

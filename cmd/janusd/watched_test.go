package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// watched are the expressions of alerts and dashboard.
func watched(t *testing.T) []string {
	t.Helper()
	var expressions []string
	content, err := os.ReadFile("../../deploy/monitoring/prometheusrule.yaml")
	require.NoError(t, err)
	var rules struct {
		Spec struct {
			Groups []struct{ Rules []struct{ Expr string } }
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &rules))
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			expressions = append(expressions, rule.Expr)
		}
	}
	content, err = os.ReadFile("../../deploy/monitoring/dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(content, &dashboard))
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	require.Greater(t, len(expressions), 30)
	return expressions
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	selector  = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	clause    = regexp.MustCompile(`\b(by|on|without|ignoring)\s*\([^)]*\)`)
	window    = regexp.MustCompile(`\[[^\]]*\]|\b[0-9]+[smhdw]\b`)
	word      = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\s*\(?`)
	operators = []string{"and", "or", "unless", "offset", "bool"}
)

// selectors returns the metrics of an expression, each with the labels that it is selected
// by.
func selectors(expression string) map[string][]string {
	found := map[string][]string{}
	bare := quoted.ReplaceAllString(expression, "")
	for _, match := range selector.FindAllStringSubmatch(bare, -1) {
		for _, label := range strings.Split(match[2], ",") {
			found[match[1]] = append(found[match[1]], strings.TrimSpace(strings.TrimRight(label, "=!~")))
		}
	}
	bare = window.ReplaceAllString(selector.ReplaceAllString(bare, ""), "")
	for _, name := range word.FindAllString(clause.ReplaceAllString(bare, ""), -1) {
		if !strings.HasSuffix(name, "(") && !slices.Contains(operators, strings.TrimSpace(name)) {
			found[strings.TrimSpace(name)] = append(found[strings.TrimSpace(name)], []string{}...)
		}
	}
	return found
}

func TestSelectorsOfAnExpression(t *testing.T) {
	assert.Equal(t, map[string][]string{"a_total": {"x", "y"}, "b": nil, "c": nil}, selectors(
		`sum by (x) (increase(a_total{x="1", y=~"p|q"}[5m])) > 3 unless on (z) label_replace(b offset 5m, "z", "$1", "x", "(.*)") and c`))
}

// scraped are labels that Prometheus adds when it scrapes.
var scraped = []string{"job", "pod", "namespace", "service", "endpoint", "instance"}

// ofPackages reports whether a metric is one of PackageTransactions, which are served where
// their kind is installed.
func ofPackages(metric string) bool { return strings.HasPrefix(metric, "janus_package_transaction") }

// ofUnended reports whether a metric is one that is served only of Transactions that have not ended.
// The test of the dashboard in deploy/ has such.
func ofUnended(metric string) bool {
	return metric == "janus_namespace_transactions" || metric == "janus_transaction_running_seconds"
}

// TestWhatIsWatchedIsServed compares the alerts and the dashboard with what a janusd serves
// that has run one Transaction.
func TestWhatIsWatchedIsServed(t *testing.T) {
	e := newEnv(t)
	p := startJanusd(t, e, "--leader-elect", "--metrics-bind-address=127.0.0.1:0")
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
	_, body := p.get("metrics", "/metrics")
	areServed(t, body, func(metric string) bool { return !ofPackages(metric) && !ofUnended(metric) })
}

// areServed compares those of the watched metrics that are meant with what is served.
func areServed(t *testing.T, body string, meant func(metric string) bool) {
	t.Helper()
	compared := 0
	for _, expression := range watched(t) {
		metrics := selectors(expression)
		require.NotEmpty(t, metrics, expression)
		for name, labels := range metrics {
			if !meant(name) {
				continue
			}
			compared++
			series := regexp.MustCompile(`(?m)^`+name+`(\{.*\})? `).FindAllString(body, -1)
			if !assert.NotEmpty(t, series, "%s, which is watched, is not served:\n%s", name, expression) {
				continue
			}
			for _, label := range labels {
				if !slices.Contains(scraped, label) {
					assert.Regexp(t, `[{,]`+label+`="`, series[0], "label %s of %s:\n%s", label, name, expression)
				}
			}
		}
	}
	assert.Positive(t, compared)
}

// The first failure after a start is an increase only of what was there before.
func TestWhatAlertsAreAboutIsServedFromTheStart(t *testing.T) {
	e := newEnv(t)
	p := startJanusd(t, e, "--metrics-bind-address=127.0.0.1:0")
	p.await("watching Transactions")
	_, body := p.get("metrics", "/metrics")
	for _, line := range []string{
		`janus_transaction_phase_transitions_total{from_phase="RollingBack",to_phase="Failed"} 0`,
		`janus_transaction_phase_transitions_total{from_phase="Pending",to_phase="Failed"} 0`,
		`janus_transaction_phase_transitions_total{from_phase="Committing",to_phase="RollingBack"} 0`,
		`janus_transaction_phase_transitions_total{from_phase="Preparing",to_phase="Committing"} 0`,
		`janus_item_operations_total{operation="rollback",result="conflict"} 0`,
		`janus_lock_operations_total{operation="renew",result="lost"} 0`,
		`janus_lock_operations_total{operation="acquire",result="held"} 0`,
		`janus_shards 1`,
	} {
		assert.Contains(t, body, "\n"+line+"\n")
	}
}

package deploy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"janus.io/janus/test/harness"
)

// prometheus is one that scrapes a janusd.
type prometheus struct {
	scene *scene
	url   *url.URL
}

// prometheus starts one, with the alerts, that scrapes as a ServiceAccount with the role for it.
func (s *scene) prometheus(janusd, alertmanager string) prometheus {
	t, dir := s.t, s.t.TempDir()
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: s.Namespace}}
	_, err := s.in.client.CoreV1().ServiceAccounts(s.Namespace).Create(t.Context(), account, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.in.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "janus-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: s.Namespace}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := s.in.client.CoreV1().ServiceAccounts(s.Namespace).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{filepath.Join(rulesFile(t, alertRules(t)...), "rules.yaml")},
		"alerting":   map[string]any{"alertmanagers": []any{map[string]any{"static_configs": []any{map[string]any{"targets": []string{alertmanager}}}}}},
		"scrape_configs": []any{map[string]any{
			"job_name": "janusd-metrics", "scheme": "https", "tls_config": map[string]any{"insecure_skip_verify": true},
			"authorization":  map[string]any{"credentials": token.Status.Token},
			"static_configs": []any{map[string]any{"targets": []string{janusd}, "labels": map[string]any{"pod": "janusd-0"}}},
		}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yaml"), config, 0o600))
	address := freeAddress(t)
	p := harness.RunProgram(t, exec.Command(monitoringProgram(t, "prometheus"), "--config.file="+dir+"/prometheus.yaml",
		"--storage.tsdb.path="+dir+"/data", "--web.listen-address="+address))
	t.Cleanup(func() { endProgram(p) })
	of := prometheus{s, &url.URL{Scheme: "http", Host: address, Path: "/api/v1"}}
	s.Until("Prometheus is ready", func() bool { return isReady(t, address) })
	return of
}

// isReady asks Prometheus or Alertmanager.
func isReady(t *testing.T, address string) bool {
	t.Helper()
	answer, err := fetch(t, "http://"+address+"/-/ready")
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func fetch(t *testing.T, address string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	return http.DefaultClient.Do(request)
}

// get asks for something, and decodes what is answered.
func (p prometheus) get(into any, values url.Values, path ...string) {
	t := p.scene.t
	t.Helper()
	at := p.url.JoinPath(path...)
	at.RawQuery = values.Encode()
	answer, err := fetch(t, at.String())
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", at, body)
	require.NoError(t, json.Unmarshal(body, &struct{ Data any }{into}))
}

// vector is the answer to a query.
type vector struct {
	Result []struct {
		Metric map[string]string
		Value  [2]any
	}
}

// answers reports whether a query has an answer, which is a number.
func (p prometheus) answers(expression string) bool {
	p.scene.t.Helper()
	var got vector
	p.get(&got, url.Values{"query": {expression}}, "query")
	for _, r := range got.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		require.NoError(p.scene.t, err)
		if !math.IsNaN(value) {
			return true
		}
	}
	return false
}

// names returns the values of labels of what a query answers.
func (p prometheus) names(expression string, labels ...string) (out []string) {
	p.scene.t.Helper()
	var got vector
	p.get(&got, url.Values{"query": {expression}}, "query")
	for _, r := range got.Result {
		var values []string
		for _, label := range labels {
			values = append(values, r.Metric[label])
		}
		out = append(out, strings.Join(values, "/"))
	}
	return out
}

// values returns those that a label of a metric has.
func (p prometheus) values(label, metric string) (out []string) {
	p.scene.t.Helper()
	p.get(&out, url.Values{"match[]": {metric}}, "label", label, "values")
	return out
}

// evaluatesAll wants every rule evaluated without an error.
func (p prometheus) evaluatesAll(groups int) {
	t := p.scene.t
	t.Helper()
	var got struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	p.get(&got, nil, "rules")
	assert.Len(t, got.Groups, groups)
	for _, group := range got.Groups {
		for _, r := range group.Rules {
			assert.Equal(t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
		}
	}
}

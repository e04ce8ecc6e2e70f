package testcluster

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

const piped = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "piped"}, "data": {"key": "value"}}`

func TestKubectlAppliesWhatItReads(t *testing.T) {
	c := Shared(t)
	namespace := Namespace(t)
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"apply", "-f", "-"}, "configmap/piped created\n"},
		{[]string{"apply", "-f", "-"}, "configmap/piped unchanged\n"},
		{[]string{"get", "configmap", "piped", "-o", "jsonpath={.metadata.managedFields[*].manager}"}, "kubectl-client-side-apply"},
		{[]string{"apply", "--server-side", "--field-manager=other", "-f", "-"}, "configmap/piped serverside-applied\n"},
		{[]string{"get", "configmap", "piped", "-o", "jsonpath={.metadata.managedFields[*].manager}"}, "other"},
	} {
		got, err := c.Kubectl(t.Context(), piped, append([]string{"-n", namespace}, step.args...)...)
		if err != nil || got != step.want {
			t.Errorf("%q printed %q, %v, want %q", step.args, got, err, step.want)
		}
	}
	var made configMap
	if err := c.call(t.Context(), http.MethodGet, "/api/v1/namespaces/"+namespace+"/configmaps/piped", nil, &made); err != nil {
		t.Error(err)
	}
}

func TestKubectlErrorCarriesWhatItSaidAndPrinted(t *testing.T) {
	c := Shared(t)
	namespace := Namespace(t)
	_, err := c.Kubectl(t.Context(), "", "-n", namespace, "get", "configmap", "absent")
	if err == nil || !strings.Contains(err.Error(), `kubectl -n `+namespace+` get configmap absent: exit status 1`) ||
		!strings.Contains(err.Error(), `configmaps "absent" not found`) {
		t.Errorf("got %v, want the command, its status and its message", err)
	}
	// A difference is status 1 too.
	printed, err := c.Kubectl(t.Context(), piped, "-n", namespace, "diff", "-f", "-")
	if err == nil || !strings.Contains(printed, "+  key: value") {
		t.Errorf("got %q, %v, want a difference and an error", printed, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Kubectl(ended, "", "version"); err == nil {
		t.Error("it ran although the context had ended")
	}
}

func TestKubectlLeavesNothing(t *testing.T) {
	c := Shared(t)
	elsewhere := t.TempDir()
	t.Setenv("HOME", elsewhere)
	t.Setenv("TMPDIR", elsewhere)
	t.Setenv("KUBECONFIG", filepath.Join(elsewhere, "kubeconfig"))
	t.Setenv("KUBECACHEDIR", filepath.Join(elsewhere, "cache"))
	for _, args := range [][]string{{"get", "namespaces"}, {"config", "set-context", "--current", "--namespace=other"}} {
		if _, err := c.Kubectl(t.Context(), "", args...); err != nil {
			t.Error(err)
		}
	}
	if got, err := c.Kubectl(t.Context(), "", "config", "view", "-o", "jsonpath={.contexts[*].context.namespace}"); err != nil || got == "other" {
		t.Errorf("one call changed the namespace of the next: %q, %v", got, err)
	}
	for _, pattern := range []string{filepath.Join(c.dir, "kubectl-*"), filepath.Join(elsewhere, "*")} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left are %q, %v", left, err)
		}
	}
}

package supervisor

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// called is what a run of kubectl said, and its exit status.
type called struct {
	stdout, stderr string
	status         int
}

// kubectl runs a program with its files in the home directory given.
func kubectl(t *testing.T, home, stdin, program string, args ...string) called {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+filepath.Join(home, "kubeconfig"))
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return called{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func TestKubectlIsReachedByArgumentAndByName(t *testing.T) {
	home := t.TempDir()
	launchRun(t, "--kubeconfig", filepath.Join(home, "kubeconfig")).awaitReady(t)
	link := filepath.Join(home, "kubectl")
	if err := os.Symlink(programs.cluster, link); err != nil {
		t.Fatal(err)
	}

	manifest := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "piped"}, "data": {"key": "value"}}`
	got := kubectl(t, home, manifest, link, "apply", "-f", "-")
	if want := (called{stdout: "configmap/piped created\n"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got = kubectl(t, home, "", programs.cluster, "kubectl", "get", "configmap", "piped", "-o", "jsonpath={.data.key}")
	if want := (called{stdout: "value"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got = kubectl(t, home, "", link, "get", "configmap", "absent")
	if want := (called{stderr: "Error from server (NotFound): configmaps \"absent\" not found\n", status: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got = kubectl(t, home, strings.Replace(manifest, `"value"`, `"other"`, 1), link, "diff", "-f", "-")
	if got.status != 1 || !strings.Contains(got.stdout, "+  key: other") {
		t.Errorf("got %+v, want a difference and status 1", got)
	}
	got = kubectl(t, home, "", link, "-v=6", "get", "--raw", "/readyz")
	if got.status != 0 || got.stdout != "ok" || !strings.Contains(got.stderr, "/readyz") {
		t.Errorf("got %+v, want ok, and the request in the log", got)
	}
	got = kubectl(t, home, "", link, "--quiet-logs=x", "version")
	if got.status == 0 || !strings.Contains(got.stderr, "unknown flag: --quiet-logs") {
		t.Errorf("got %+v, want the flags of run to be unknown", got)
	}
}

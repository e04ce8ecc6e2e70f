package supervisor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// administrator reads the kubeconfig that a ready line names.
func administrator(t *testing.T, path string) (apiClient, string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var k kubeconfig
	if err := json.Unmarshal(content, &k); err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(k.Users[0].User.Cert, k.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(k.Clusters[0].Cluster.CA) {
		t.Fatal("the kubeconfig holds no authority")
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots, MinVersion: tls.VersionTLS12}
	return newAPIClient(config), k.Clusters[0].Cluster.Server
}

// createConfigMap creates a ConfigMap in the default namespace.
func createConfigMap(t *testing.T, c apiClient, server, name string) string {
	t.Helper()
	collection := server + "/api/v1/namespaces/default/configmaps"
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]string{"name": name}, "data": map[string]string{"key": "value"},
	}
	if err := c.post(t.Context(), collection, object); err != nil {
		t.Fatal(err)
	}
	return collection + "/" + name
}

func TestRunServesUntilItIsInterrupted(t *testing.T) {
	target := filepath.Join(t.TempDir(), "kubeconfig")
	logs := filepath.Join(t.TempDir(), "logs")
	r := launchRun(t, "--kubeconfig", target, "--scheduler", "--quiet-logs", logs)
	line := r.awaitReady(t)
	t.Log(line)
	if !regexp.MustCompile(`^ready: kubeconfig=\S+ server=https://127\.0\.0\.1:\d+ \(\d+\.\d s\)$`).MatchString(line) {
		t.Errorf("unexpected form: %s", line)
	}
	c, server := administrator(t, target)
	if err := c.probe(server + "/readyz")(t.Context()); err != nil {
		t.Error(err)
	}
	body, err := exchange(t.Context(), c.http, http.MethodGet, createConfigMap(t, c, server, "sample"), nil)
	if err != nil || !strings.Contains(string(body), `"key":"value"`) {
		t.Errorf("read back %s, %v", body, err)
	}
	pids := r.pids(t)
	if len(pids) != 5 {
		t.Errorf("pids.json has %v, want four components and the supervisor", pids)
	}
	r.interrupt(t, syscall.SIGTERM)
	if err := r.awaitEnd(t, 10*time.Second); err != nil {
		t.Errorf("%v\n%s", err, r.stderr.String())
	}
	t.Log(r.said())
	if strings.Contains(r.said(), "had to be killed") {
		t.Error("a component did not end in order")
	}
	if err := noneLeft(pids)(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kubeconfig is left: %v", err)
	}
	for _, name := range []string{etcd, apiServer, controllerManager, scheduler} {
		if _, err := os.Stat(filepath.Join(logs, name+".log")); err != nil {
			t.Error(err)
		}
	}
	if said := r.stderr.String(); said != "" {
		t.Errorf("--quiet-logs left on standard error:\n%s", said)
	}
}

func TestRunKeepsADirectoryThatItWasGiven(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		kept bool
	}{
		"given":                {nil, true},
		"given and to be gone": {[]string{"--remove-dir"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := launchRun(t, append(test.args, "--controller-manager=false", "--stop-on-stdin-eof")...)
			r.awaitReady(t)
			if err := r.stdin.Close(); err != nil {
				t.Fatal(err)
			}
			if err := r.awaitEnd(t, 10*time.Second); err != nil {
				t.Errorf("%v\n%s", err, r.stderr.String())
			}
			_, err := os.Stat(filepath.Join(r.dir, "etcd"))
			if kept := err == nil; kept != test.kept {
				t.Errorf("kept is %t, want %t (%v)", kept, test.kept, err)
			}
		})
	}
}

func TestRunUsesADirectoryAgain(t *testing.T) {
	dir := t.TempDir()
	var path string
	for _, round := range []string{"first", "second"} {
		r := launchRun(t, "--controller-manager=false", "--dir", dir)
		r.awaitReady(t)
		c, server := administrator(t, filepath.Join(dir, "admin.kubeconfig"))
		if round == "first" {
			path = strings.TrimPrefix(createConfigMap(t, c, server, "kept"), server)
		} else if err := c.probe(server + path)(t.Context()); err != nil {
			t.Error(err)
		}
		r.interrupt(t, syscall.SIGINT)
		if err := r.awaitEnd(t, 10*time.Second); err != nil {
			t.Error(err)
		}
	}
}

func TestKilledSupervisorLeavesNoProcess(t *testing.T) {
	r := launchRun(t, "--nodes=1", "--kwok-binary", programs.kwok)
	r.awaitReady(t)
	pids := r.pids(t)
	if len(pids) != 6 {
		t.Errorf("pids.json has %v, want five components and the supervisor", pids)
	}
	r.interrupt(t, syscall.SIGKILL)
	if err := r.awaitEnd(t, 10*time.Second); err == nil {
		t.Error("a killed supervisor reports success")
	}
	within(t, 10*time.Second, noneLeft(pids))
}

func TestStopDuringTheStartLeavesNoProcess(t *testing.T) {
	r := launchRun(t)
	within(t, 30*time.Second, func(context.Context) error {
		_, err := os.Stat(filepath.Join(r.dir, "pids.json"))
		return err
	})
	pids := r.pids(t)
	r.interrupt(t, syscall.SIGTERM)
	if err := r.awaitEnd(t, 15*time.Second); err != nil {
		t.Errorf("%v\n%s", err, r.stderr.String())
	}
	if err := noneLeft(pids)(t.Context()); err != nil {
		t.Error(err)
	}
	if strings.Contains(r.said(), "ready: ") {
		t.Error("a cluster that was stopped early says that it is ready")
	}
}

func TestComponentThatEndsByItselfIsReported(t *testing.T) {
	r := launchRun(t, "--quiet-logs", t.TempDir())
	r.awaitReady(t)
	pids := r.pids(t)
	if err := syscall.Kill(pids[apiServer], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := r.awaitEnd(t, 10*time.Second)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("got %v, want exit status 1", err)
	}
	said := r.stderr.String()
	if !strings.Contains(said, "kube-apiserver ended by itself (signal: killed), its last lines:\n\t") {
		t.Errorf("it said %q", said)
	}
	if err := noneLeft(pids)(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestComponentThatDoesNotStartIsReported(t *testing.T) {
	// etcd refuses a data directory that is a file.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "etcd"), []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := launchRun(t, "--dir", dir, "--quiet-logs", t.TempDir())
	if err := r.awaitEnd(t, 30*time.Second); err == nil {
		t.Error("success, want a failure")
	}
	if said := r.stderr.String(); !strings.Contains(said, "etcd ended by itself (exit status 1)") {
		t.Errorf("it said %q", said)
	}
}

func TestKilledComponentIsStartedAgain(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) { endedComponentIsStartedAgain(t, signal) })
	}
}

func endedComponentIsStartedAgain(t *testing.T, signal syscall.Signal) {
	t.Helper()
	r := launchRun(t, "--restart-killed")
	r.awaitReady(t)
	c, server := administrator(t, filepath.Join(r.dir, "admin.kubeconfig"))
	path := createConfigMap(t, c, server, "survivor")
	before := r.pids(t)
	for _, name := range []string{etcd, apiServer} {
		if err := syscall.Kill(before[name], signal); err != nil {
			t.Fatal(err)
		}
		within(t, time.Minute, func(ctx context.Context) error {
			if r.pids(t)[name] == before[name] {
				return errors.New("not started again")
			}
			return all(c.probe(server+"/readyz"), c.probe(path))(ctx)
		})
	}
	r.interrupt(t, syscall.SIGTERM)
	if err := r.awaitEnd(t, 10*time.Second); err != nil {
		t.Errorf("%v\n%s", err, r.stderr.String())
	}
	if err := noneLeft(before)(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHelpIsPrintedAndSucceeds(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"run", "--help"}} {
		said, err := exec.Command(programs.cluster, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(said), "usage: janus-cluster") {
			t.Errorf("%q: %v\n%s", args, err, said)
		}
	}
	if err := exec.Command(programs.cluster, "unknown").Run(); err == nil {
		t.Error("an unknown command succeeds")
	}
}

package main

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

var update = flag.Bool("update", false, "write the golden output into the scripts")

// withCluster runs the tests with a cluster.
type withCluster struct{ *testing.M }

func (m withCluster) Run() int {
	return testcluster.Main(m.M, testcluster.Options{ControllerManager: true, CRDs: filepath.Join(harness.Root(), "deploy", "crd")})
}

// The test binary is the plugin when it is started under one of these names.
func TestMain(m *testing.M) {
	testscript.Main(withCluster{m}, map[string]func(){"janus": main, "kubectl-janus": main})
}

type command = func(ts *testscript.TestScript, neg bool, args []string)

// kubectl ARGS... is the real kubectl in the namespace of the script. A file that it is to
// read is given as the last of ARGS, after <.
func kubectl(t *testing.T, namespace string) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		stdin := ""
		if n := len(args); n > 1 && args[n-2] == "<" {
			stdin, args = ts.ReadFile(args[n-1]), args[:n-2]
		}
		out, err := testcluster.Shared(t).Kubectl(t.Context(), stdin, append([]string{"--namespace=" + namespace}, args...)...)
		_, _ = ts.Stdout().Write([]byte(out))
		if (err != nil) != neg {
			ts.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
		}
	}
}

// ready APP says of the Pod with the label app=APP that it is ready, once it is there: no Node
// would, since there is none.
func ready(t *testing.T, namespace string) command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: ready APP")
		}
		run := func(args ...string) (string, error) {
			return testcluster.Shared(t).Kubectl(t.Context(), "", append([]string{"--namespace=" + namespace}, args...)...)
		}
		var pod string
		require.Eventually(t, func() bool {
			out, err := run("get", "pods", "--selector=app="+args[0], "--output=name")
			pod = strings.TrimSpace(out)
			return err == nil && pod != ""
		}, time.Minute, 100*time.Millisecond, "there is no Pod of %s", args[0])
		if _, err := run("patch", pod, "--subresource=status", "--patch",
			`{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`); err != nil {
			ts.Fatalf("make the Pod of %s ready: %v", args[0], err)
		}
	}
}

// Scripts that need no API server.
func TestOffline(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/offline", UpdateScripts: *update, Cmds: map[string]command{"exits": harness.Exits},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
			return nil
		},
	})
}

// Each of these scripts has a namespace of its own, with a ServiceAccount deployer that may
// do everything in it, and a Janus that runs its Transactions. ConfigMaps named refused-…
// are refused there.
func TestOnACluster(t *testing.T) {
	scripts, err := filepath.Glob("testdata/cluster/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Refuse()
			e.Start()
			testscript.Run(t, testscript.Params{
				Files: []string{script}, UpdateScripts: *update,
				Cmds:  map[string]command{"exits": harness.Exits, "kubectl": kubectl(t, e.Namespace), "ready": ready(t, e.Namespace)},
				Setup: func(env *testscript.Env) error { return prepare(t, e.Namespace, env) },
			})
		})
	}
}

// prepare makes a kubeconfig in which the namespace is the current one.
func prepare(t *testing.T, namespace string, env *testscript.Env) error {
	config, err := clientcmd.LoadFromFile(testcluster.Shared(t).Kubeconfig)
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	path := filepath.Join(env.WorkDir, "kubeconfig")
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("KUBECONFIG", path)
	env.Setenv("NAMESPACE", namespace)
	env.Setenv("POLICIES", filepath.Join(harness.Root(), "deploy", "policies"))
	env.Setenv("COMPLETE", filepath.Join(harness.Root(), "cmd", "kubectl-janus", "kubectl_complete-janus"))
	return clientcmd.WriteToFile(*config, path)
}

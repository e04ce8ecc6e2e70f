package main

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

var update = flag.Bool("update", false, "write the golden output into the scripts")

// withCluster runs the tests with a cluster of their own: a janusd that is told no namespace
// runs the Transactions of all.
type withCluster struct{ *testing.M }

func (m withCluster) Run() int { return testcluster.Main(m.M, testcluster.Options{Alone: true}) }

// The test binary is janusd when it is started under that name.
func TestMain(m *testing.M) {
	testscript.Main(withCluster{m}, map[string]func(){"janusd": main})
}

// commands are what scripts have beside the usual.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": harness.Exits}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", Cmds: commands, UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
	})
}

// These need an API server. One without the CRD is another one than that of the
// other tests.
func TestScriptsOnACluster(t *testing.T) {
	e := harness.New(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/cluster", Cmds: commands, UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", testcluster.Shared(t).Kubeconfig)
			env.Setenv("NAMESPACE", e.Namespace)
			return nil
		},
	})
}

func TestScriptsWithoutTheCRD(t *testing.T) {
	cluster, err := testcluster.Start(testcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}()
	// A subtest is over before the cluster stops.
	t.Run("group", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir: "testdata/bare", Cmds: commands, UpdateScripts: *update,
			Setup: func(env *testscript.Env) error {
				env.Setenv("KUBECONFIG", cluster.Kubeconfig)
				return nil
			},
		})
	})
}

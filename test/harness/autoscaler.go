package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/stretchr/testify/require"
)

// Autoscale runs the real controller of HorizontalPodAutoscalers until the test
// ends: the cluster runs without. There are no metrics, so all it does is to raise
// replicas to what its object demands at least, within a second or two.
func (e *Env) Autoscale() {
	e.t.Helper()
	binary := os.Getenv("JANUS_CLUSTER_BINARY")
	if binary == "" {
		binary = filepath.Join(Root(), "bin", "janus-cluster")
	}
	//nolint:gosec // Who runs the tests says which binary they run, as for the cluster.
	controller := exec.CommandContext(e.t.Context(), binary, "kube-controller-manager",
		"--kubeconfig="+e.cluster.Kubeconfig,
		"--controllers=horizontal-pod-autoscaler-controller",
		"--horizontal-pod-autoscaler-sync-period=1s",
		"--leader-elect=false",
		"--secure-port=0")
	// The controller goes with the tests, however these end.
	controller.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(e.t, controller.Start())
	// It is killed when the test's context ends, and is not asked how it was.
	e.t.Cleanup(func() { _ = controller.Wait() })
}

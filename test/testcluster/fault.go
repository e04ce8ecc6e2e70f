package testcluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// The components that Cluster.Signal and Cluster.PID know.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	Supervisor        = "supervisor"
)

// PID returns the process id of a component. It changes when the component is
// started again.
func (c *Cluster) PID(component string) (int, error) {
	content, err := os.ReadFile(filepath.Join(c.dir, "pids.json"))
	if err != nil {
		return 0, fmt.Errorf("read the process ids of the cluster: %w", err)
	}
	var pids map[string]int
	if err := json.Unmarshal(content, &pids); err != nil {
		return 0, fmt.Errorf("decode the process ids of the cluster: %w", err)
	}
	pid, ok := pids[component]
	if !ok {
		return 0, fmt.Errorf("the cluster runs no %s", component)
	}
	return pid, nil
}

// Signal sends a signal to a component: SIGSTOP and SIGCONT make it hang and
// go on, SIGKILL makes it die and SIGTERM end, see Options.RestartKilled.
func (c *Cluster) Signal(component string, signal syscall.Signal) error {
	if c.offered() {
		return fmt.Errorf("send %s to %s: other packages use the cluster too; a test that breaks one starts its own", signal, component)
	}
	pid, err := c.PID(component)
	if err != nil {
		return fmt.Errorf("send %s: %w", signal, err)
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("send %s to %s: %w", signal, component, err)
	}
	return nil
}

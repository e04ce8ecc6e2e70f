package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
)

// Shell runs commands as a person types them who works in one namespace of the cluster:
// kubectl is the cluster's own.
type Shell struct {
	home string
	dir  string
}

// NewShell makes a Shell in a directory. It lasts until Close.
func (c *Cluster) NewShell(namespace, dir string) (*Shell, error) {
	binary, err := clusterBinary.find()
	if err != nil {
		return nil, fmt.Errorf("make a shell: %w", err)
	}
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("make a shell: %w", err)
	}
	for _, named := range config.Contexts {
		named.Namespace = namespace
	}
	home, err := os.MkdirTemp(c.dir, "shell-")
	if err != nil {
		return nil, fmt.Errorf("make a shell: %w", err)
	}
	s := &Shell{home: home, dir: dir}
	err = errors.Join(
		clientcmd.WriteToFile(*config, filepath.Join(home, "kubeconfig")),
		os.Symlink(binary, filepath.Join(home, "kubectl")))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a shell: %w", err), s.Close())
	}
	return s, nil
}

// Provide makes a program one that is found by its name.
func (s *Shell) Provide(name, path string) error {
	if err := os.Symlink(path, filepath.Join(s.home, name)); err != nil {
		return fmt.Errorf("provide %s: %w", name, err)
	}
	return nil
}

// Run returns what a command prints, on standard output and on standard error. When the time is over,
// what the command has started is ended with it.
func (s *Shell) Run(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"PATH=" + s.home + ":" + os.Getenv("PATH"),
		"HOME=" + s.home,
		"TMPDIR=" + s.home,
		"KUBECONFIG=" + filepath.Join(s.home, "kubeconfig"),
		"KUBECACHEDIR=" + filepath.Join(s.home, "cache"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", command, err)
	}
	return string(out), err
}

// Close removes the Shell's files.
func (s *Shell) Close() error { return os.RemoveAll(s.home) }

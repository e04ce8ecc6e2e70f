package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// Kubectl runs the real kubectl, of the cluster's own version, as the
// administrator. It reads stdin and returns what it has printed, also if it ends
// with an error, which then carries what it said on standard error. Each call has
// a home, a kubeconfig and a cache of its own, below the cluster's directory,
// and sees nothing of the environment of the tests but PATH.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (stdout string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
		}
	}()
	binary, err := clusterBinary.find()
	if err != nil {
		return "", err
	}
	home, err := c.kubectlHome()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()

	cmd := exec.CommandContext(ctx, binary, append([]string{"kubectl"}, args...)...)
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), // For what kubectl diff and plugins run.
		"HOME=" + home,
		"TMPDIR=" + home,
		"KUBECONFIG=" + filepath.Join(home, "kubeconfig"),
		"KUBECACHEDIR=" + filepath.Join(home, "cache"),
	}
	cmd.Stdin = strings.NewReader(stdin)
	var printed, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &said
	if err := cmd.Run(); err != nil {
		return printed.String(), fmt.Errorf("%w; it said:\n%s", err, said.Bytes())
	}
	return printed.String(), nil
}

// kubectlHome makes a directory with a copy of the kubeconfig, which kubectl
// config may change.
func (c *Cluster) kubectlHome() (string, error) {
	config, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err != nil {
		return "", err
	}
	home, err := os.MkdirTemp(c.dir, "kubectl-")
	if err != nil {
		return "", err
	}
	if err := clientcmd.WriteToFile(*config, filepath.Join(home, "kubeconfig")); err != nil {
		return "", errors.Join(err, os.RemoveAll(home))
	}
	return home, nil
}

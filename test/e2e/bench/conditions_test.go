package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"janus.io/janus/test/harness"
)

// conditions says what was measured, and on what.
func (s *stage) conditions(ctx context.Context, out io.Writer) error {
	kubernetes, err := kubernetesVersion()
	if err != nil {
		return err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Revision %s, %s, Kubernetes %s, %d cores, %s; load average %s when it began.\n",
		revisionOf(ctx), runtime.Version(), kubernetes, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly),
		strings.Join(strings.Fields(string(load))[:3], " "))
	return err
}

// kubernetesVersion is that of the module that bin/janus-cluster is built from, which has no other stamp.
func kubernetesVersion() (string, error) {
	file := filepath.Join(harness.Root(), "hack", "cluster", "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(string(content), "k8s.io/kubernetes ")
	if !found {
		return "", fmt.Errorf("%s requires no k8s.io/kubernetes", file)
	}
	version, _, _ := strings.Cut(rest, "\n")
	return version, nil
}

// revisionOf names the commit that is measured; "-dirty" says that the sources are not as in it.
func revisionOf(ctx context.Context) string {
	describe := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*")
	describe.Dir = harness.Root()
	name, err := describe.Output()
	if err != nil {
		return "of no checkout" // An archive of the sources can be measured too.
	}
	return string(bytes.TrimSpace(name))
}

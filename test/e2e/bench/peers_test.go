package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"janus.io/janus/test/harness"
)

// all are manifests of the first n ConfigMaps.
func all(n int, value string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(one(i, value) + "\n---\n")
	}
	return b.String()
}

// writeKubeconfig writes what a client of that configuration needs into a kubeconfig.
func writeKubeconfig(path string, config *rest.Config) error {
	if err := rest.LoadTLSFiles(config); err != nil {
		return err
	}
	const name = "bench"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: name,
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
	}, path)
}

// run runs a program of bin, and returns what it has printed.
func (s *stage) run(ctx context.Context, stdin, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(harness.Root(), "bin", name), args...)
	home := s.file("home")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "KUBECACHEDIR=" + filepath.Join(home, "cache"),
		"HELM_CACHE_HOME=" + filepath.Join(home, "helm"), "HELM_CONFIG_HOME=" + filepath.Join(home, "helm"), "HELM_DATA_HOME=" + filepath.Join(home, "helm"),
	}
	cmd.Stdin = strings.NewReader(stdin)
	var printed, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w; it said:\n%s", name, strings.Join(args, " "), err, said.Bytes())
	}
	return printed.String(), nil
}

// flux applies the ConfigMaps as the kustomize-controller does, and returns how long that took
// once it knew the kinds. A controller does not start for it, so the start is not counted.
func (s *stage) flux(ctx context.Context, namespace string, n int, first, value, kubeconfig string) (time.Duration, error) {
	printed, err := s.run(ctx, all(1, first)+"\n===\n"+all(n, value), "peer", kubeconfig, namespace)
	if err != nil {
		return 0, err
	}
	ms, err := strconv.ParseFloat(strings.TrimSpace(printed), 64)
	return time.Duration(ms * float64(time.Millisecond)), err
}

// measureFlux notes how long flux took.
func (s *stage) measureFlux(ctx context.Context, r *row, namespace string, n, round int, kubeconfig string) error {
	took, err := s.flux(ctx, namespace, n, fmt.Sprint("warm-", round), fmt.Sprint("flux-", round), kubeconfig)
	if err == nil {
		r.times[flux] = append(r.times[flux], took)
	}
	return err
}

// helm installs a chart of the ConfigMaps, or upgrades it. The value is in the chart, as most are.
func (s *stage) helm(ctx context.Context, namespace string, n int, value string) error {
	chart := s.file("chart")
	for name, content := range map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: bench\nversion: 1.0.0\n",
		"templates/all.yaml": all(n, value),
	} {
		path := filepath.Join(chart, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	_, err := s.run(ctx, "", "helm", "upgrade", "bench", chart, "--install", "--take-ownership",
		"--server-side=true", "--force-conflicts", "--namespace="+namespace, "--kubeconfig="+s.kubeconfig)
	return err
}

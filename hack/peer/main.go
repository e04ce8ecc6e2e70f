package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // The library of Flux takes such a client.
)

// concurrency is how many objects the kustomize-controller compares side by side, where its flag
// --concurrent-ssa does not say.
const concurrency = 4

const usage = `usage: peer KUBECONFIG NAMESPACE <MANIFESTS

Applies the manifests, twice if a line of three equal signs divides them: the first half is
applied before the clock starts. It prints how many milliseconds the second took.`

func main() {
	if len(os.Args) != 3 {
		_, _ = fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	took, err := run(context.Background(), os.Args[1], os.Args[2], os.Stdin)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
	_, _ = fmt.Printf("%.3f\n", float64(took)/float64(time.Millisecond))
}

// run applies the manifests, and returns how long that took without the start of the process,
// which a controller has behind it.
func run(ctx context.Context, kubeconfig, namespace string, in io.Reader) (time.Duration, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.UserAgent = -1, "peer"
	c, err := client.New(config, client.Options{})
	if err != nil {
		return 0, fmt.Errorf("make a client: %w", err)
	}
	manifests, err := io.ReadAll(in)
	if err != nil {
		return 0, fmt.Errorf("read the manifests: %w", err)
	}
	manager := ssa.NewResourceManager(c, nil, ssa.Owner{Field: "flux-peer", Group: "peer.janus.io"})
	manager.SetConcurrency(concurrency)
	var took time.Duration
	for part := range bytes.SplitSeq(manifests, []byte("\n===\n")) {
		objects, err := decode(part, namespace)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		if _, err := manager.ApplyAll(ctx, objects, ssa.DefaultApplyOptions()); err != nil {
			return 0, fmt.Errorf("apply: %w", err)
		}
		took = time.Since(began)
	}
	return took, nil
}

func decode(manifests []byte, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := utils.ReadObjects(bytes.NewReader(manifests))
	if err != nil {
		return nil, fmt.Errorf("decode the manifests: %w", err)
	}
	for _, object := range objects {
		object.SetNamespace(namespace)
	}
	return objects, nil
}

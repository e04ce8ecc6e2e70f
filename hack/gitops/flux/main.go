// Command flux applies manifests as Flux's kustomize-controller does: by the same library, as
// the same field manager, with the options of the controller. It reads the manifests from
// standard input and prints a line for each object.
//
// It is for tests: it shows what the next reconciliation does to objects that a Transaction
// has changed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client" //nolint:depguard // The library of Flux takes such a client.
)

const (
	controller = "kustomize-controller"
	group      = "kustomize.toolkit.fluxcd.io"
)

func main() {
	flag.Parse()
	if err := run(context.Background(), os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loaded.ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return fmt.Errorf("read the namespace: %w", err)
	}
	client, err := ctrl.New(config, ctrl.Options{})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	objects, err := utils.ReadObjects(in)
	if err != nil {
		return fmt.Errorf("read the manifests: %w", err)
	}
	for _, object := range objects {
		if object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
	}
	if err := normalize.UnstructuredList(objects); err != nil {
		return fmt.Errorf("normalize the manifests: %w", err)
	}
	poller := polling.NewStatusPoller(client, client.RESTMapper(), polling.Options{})
	manager := ssa.NewResourceManager(client, poller, ssa.Owner{Field: controller, Group: group})
	manager.SetOwnerLabels(objects, "shop", namespace)
	changes, err := manager.ApplyAllStaged(ctx, objects, options())
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	for _, entry := range changes.Entries {
		if _, err := fmt.Fprintf(out, "%s %s\n", entry.Subject, entry.Action); err != nil {
			return err
		}
	}
	return nil
}

// options are those of a Kustomization that sets none of its own, as
// internal/controller/kustomization_controller.go of kustomize-controller has them.
func options() ssa.ApplyOptions {
	options := ssa.DefaultApplyOptions()
	options.ExclusionSelector = map[string]string{group + "/reconcile": "disabled", group + "/ssa": "Ignore"}
	options.IfNotPresentSelector = map[string]string{group + "/ssa": "IfNotPresent"}
	options.ForceSelector = map[string]string{group + "/force": "enabled"}
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation, group + "/checksum", "fluxcd.io/sync-checksum"},
		Labels:      []string{"fluxcd.io/sync-gc-mark"},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: controller, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
		Exclusions: map[string]string{group + "/ssa": "Merge"},
	}
	return options
}

// Command argocd syncs manifests as Argo CD's application controller does: by the same
// engine, as the same field manager. It reads the manifests from standard input, syncs them
// unless the comparison finds no difference, and prints a line for each object.
//
// It is for tests: it shows what the next comparison and the next sync make of objects that a
// Transaction has changed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/engine"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	// manager is the field manager of Argo CD, and tracking the annotation by which it tells
	// what belongs to an Application.
	manager  = "argocd-controller"
	tracking = "argocd.argoproj.io/tracking-id"
)

func main() {
	serverSide := flag.Bool("server-side", false, "the sync option ServerSideApply=true")
	prune := flag.Bool("prune", false, "delete what the manifests have no more")
	flag.Parse()
	if err := run(context.Background(), os.Stdin, os.Stdout, *serverSide, *prune); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, serverSide, prune bool) error {
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loaded.ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // A test waits for it, and reads what it says.
	klog.SetLogger(logr.Discard())
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return fmt.Errorf("read the namespace: %w", err)
	}
	objects, err := read(in, namespace)
	if err != nil {
		return fmt.Errorf("read the manifests: %w", err)
	}
	app, err := open(config, namespace)
	if err != nil {
		return err
	}
	defer app.close()
	different, err := app.different(objects, serverSide)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if !different {
		_, err := fmt.Fprintln(out, "Synced")
		return err
	}
	results, err := app.engine.Sync(ctx, objects, app.managed, "revision", namespace,
		sync.WithLogr(logr.Discard()), sync.WithOperationSettings(false, prune, false, false), sync.WithManifestValidation(true),
		sync.WithServerSideApply(serverSide), sync.WithServerSideApplyManager(manager))
	var failed error
	for _, r := range results {
		if _, err := fmt.Fprintf(out, "%s/%s %s: %s\n", r.ResourceKey.Kind, r.ResourceKey.Name, r.Status, r.Message); err != nil {
			return err
		}
		if r.Status == common.ResultCodeSyncFailed {
			failed = errors.New("the sync failed")
		}
	}
	return errors.Join(err, failed)
}

// read gives the manifests as Argo CD has rendered them, with the mark of the Application.
func read(in io.Reader, namespace string) ([]*unstructured.Unstructured, error) {
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	objects, err := kube.SplitYAML(text)
	for _, object := range objects {
		object.SetNamespace(namespace)
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[tracking] = id(kube.GetResourceKey(object))
		object.SetAnnotations(annotations)
	}
	return objects, err
}

func id(key kube.ResourceKey) string {
	return fmt.Sprintf("shop:%s/%s:%s/%s", key.Group, key.Kind, key.Namespace, key.Name)
}

// application is what Argo CD knows of one namespace.
type application struct {
	namespace string
	cache     cache.ClusterCache
	engine    engine.GitOpsEngine
	close     func()
}

func open(config *rest.Config, namespace string) (*application, error) {
	seen := cache.NewClusterCache(config, cache.SetNamespaces([]string{namespace}), cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(un *unstructured.Unstructured, _ bool) (any, bool) {
			mark := un.GetAnnotations()[tracking]
			return mark, mark != ""
		}))
	e := engine.NewEngine(config, seen, engine.WithLogr(logr.Discard()))
	stop, err := e.Run()
	if err != nil {
		return nil, fmt.Errorf("read the namespace: %w", err)
	}
	return &application{namespace: namespace, cache: seen, engine: e, close: stop}, nil
}

func (a *application) managed(r *cache.Resource) bool { return r.Info == id(r.ResourceKey()) }

// different tells whether Argo CD would call the Application OutOfSync.
func (a *application) different(objects []*unstructured.Unstructured, serverSide bool) (bool, error) {
	live, err := a.cache.GetManagedLiveObjs(objects, a.managed)
	if err != nil {
		return false, err
	}
	both := sync.Reconcile(objects, live, a.namespace, a.cache)
	list, err := diff.DiffArray(both.Target, both.Live, diff.WithLogr(logr.Discard()), diff.WithManager(manager),
		diff.WithGVKParser(a.cache.GetGVKParser()), diff.WithStructuredMergeDiff(serverSide))
	if err != nil {
		return false, err
	}
	return list.Modified, nil
}

package crossplane

import (
	"context"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/packages"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/check"
	"janus.io/janus/packages/image"
	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/harness"
)

// scene is a round of operations, of which the last leaves what the first has found.
type scene struct {
	begin      func()
	operations []operation
}

// scenes are all of them.
func (b *bench) scenes() []scene {
	b.t.Helper()
	family := crossplane.Needs(b.source("family"), ">=v1.0.0")
	b.push("queue", "v1.0.0", "Queue", size)
	b.push("family", "v1.0.0", "Config", size)
	b.push("bucket", "v1.0.0", "Bucket", size, family)
	b.push("store", "v1.0.0", "Bucket", sizeAndColor, family)
	return []scene{
		{b.alone, []operation{b.installs(), b.deletes()}},
		{b.used, []operation{b.deletesWhatIsUsed()}},
		{b.used, []operation{b.replaces(), b.undoes()}},
		{b.used, []operation{b.upgradesInVain(family)}},
	}
}

func (b *bench) version(name, tag string) image.Reference {
	return image.Reference{Source: b.source(name), Version: tag}
}

func (b *bench) installs() operation {
	return operation{name: "install", phase: api.PhaseCommitted, works: []string{"acme-family", "acme-bucket", "acme-queue"}, make: func() *api.Transaction {
		return b.compiles(packages.Request{Type: change.Install, Image: b.version("bucket", "v1.0.0")})
	}}
}

func (b *bench) deletes() operation {
	return operation{name: "delete", phase: api.PhaseCommitted, works: []string{"acme-queue"}, make: func() *api.Transaction {
		return b.compiles(packages.Request{Type: change.Delete, Targets: []string{"acme-bucket", "acme-family"}})
	}}
}

// deletesWhatIsUsed fails at the first revision that would take a custom resource along. By
// then the package is deleted.
func (b *bench) deletesWhatIsUsed() operation {
	return operation{name: "delete-in-use", phase: api.PhaseRolledBack, works: []string{"acme-queue"}, make: func() *api.Transaction {
		return b.compiles(packages.Request{Type: change.Delete, Targets: []string{"acme-bucket", "acme-family"}}, check.DataLoss)
	}}
}

func (b *bench) replaces() operation {
	return operation{name: "replace", phase: api.PhaseCommitted, works: []string{"acme-store", "acme-family", "acme-queue"}, make: func() *api.Transaction {
		return b.compiles(packages.Request{Type: change.Replace, Image: b.version("store", "v1.0.0"), Targets: []string{"acme-bucket"}})
	}}
}

// undoes undoes the Transaction before it.
func (b *bench) undoes() operation {
	return operation{name: "undo-of-replace", phase: api.PhaseCommitted, works: []string{"acme-family", "acme-queue"}, make: func() *api.Transaction {
		t := &api.Transaction{}
		t.Spec.ServiceAccountName, t.Spec.UndoOf = "installer", &api.UndoOf{Name: b.last()}
		return t
	}}
}

// upgradesInVain finds another image than the plan has: the tag has moved. By then Crossplane has
// stopped the old version, and has put the schema of the new one in place.
func (b *bench) upgradesInVain(needs string) operation {
	return operation{name: "upgrade-that-fails", phase: api.PhaseRolledBack, works: []string{"acme-bucket", "acme-family", "acme-queue"}, make: func() *api.Transaction {
		b.push("bucket", "v1.1.0", "Bucket", sizeAndColor, needs)
		t := b.compiles(packages.Request{Type: change.Install, Image: b.version("bucket", "v1.1.0")})
		b.push("bucket", "v1.1.0", "Bucket", `{type: object, properties: {size: {type: integer}, shape: {type: string}}}`, needs)
		return t
	}}
}

// alone has a provider installed that nothing is to happen to, and a custom resource of it.
func (b *bench) alone() {
	b.t.Helper()
	made := b.run(operation{name: "alone", phase: api.PhaseCommitted, works: []string{"acme-queue"}, make: func() *api.Transaction {
		return b.compiles(packages.Request{Type: change.Install, Image: b.version("queue", "v1.0.0")})
	}}, nil)
	require.Empty(b.t, made.failures, details(made))
	b.Served("acme.io/v1 Queue")
	b.Apply("apiVersion: acme.io/v1\nkind: Queue\nmetadata: {name: theirs}\nspec: {size: 1}\n")
	b.tidy()
}

// used has beside that the provider that is to be changed, and custom resources of its kinds.
func (b *bench) used() {
	b.t.Helper()
	b.alone()
	made := b.run(b.installs(), nil)
	require.Empty(b.t, made.failures, details(made))
	b.Served("acme.io/v1 Bucket")
	b.Served("acme.io/v1 Config")
	b.Apply("apiVersion: acme.io/v1\nkind: Bucket\nmetadata: {name: mine}\nspec: {size: 3}\n")
	b.Apply("apiVersion: acme.io/v1\nkind: Config\nmetadata: {name: mine}\nspec: {size: 4}\n")
	b.tidy()
}

// reset deletes everything, whatever state it is in.
func (b *bench) reset() {
	b.t.Helper()
	ctx := b.t.Context()
	transactions := b.Dynamic.Resource(api.Resource).Namespace(b.Namespace)
	list, err := transactions.List(ctx, metav1.ListOptions{})
	require.NoError(b.t, err)
	for _, u := range list.Items {
		if len(u.GetFinalizers()) > 0 {
			_, err := transactions.Patch(ctx, u.GetName(), types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
			require.NoError(b.t, err)
		}
	}
	b.tidy()
	for _, namespace := range []string{harness.SystemNamespace, crossplane.Namespace} {
		leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
		require.NoError(b.t, b.Dynamic.Resource(leases).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: ofJanus}))
	}
	require.NoError(b.t, harness.Poll(ctx, b.gone))
}

// gone deletes packages and revisions, and reports whether there were none, nor definitions.
func (b *bench) gone(ctx context.Context) (bool, error) {
	left := 0
	for _, kind := range []string{"providers", "providerrevisions"} {
		client := b.Dynamic.Resource(packageKind("v1", kind))
		if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return false, err
		}
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		left += len(list.Items)
	}
	definitions, err := b.Dynamic.Resource(definitionKind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return left == 0 && !slices.ContainsFunc(definitions.Items, func(u unstructured.Unstructured) bool { return ours(&u) }), nil
}

// tidy forgets all Transactions.
func (b *bench) tidy() {
	b.t.Helper()
	require.NoError(b.t, b.Dynamic.Resource(api.Resource).Namespace(b.Namespace).DeleteCollection(b.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(b.t, harness.Poll(b.t.Context(), func(ctx context.Context) (bool, error) {
		images, err := b.Kube.CoreV1().ConfigMaps(b.Namespace).List(ctx, metav1.ListOptions{LabelSelector: ofJanus})
		if err != nil {
			return false, err
		}
		revisions, err := b.Kube.AppsV1().ControllerRevisions(b.Namespace).List(ctx, metav1.ListOptions{LabelSelector: ofJanus})
		return err == nil && len(images.Items)+len(revisions.Items) == 0, err
	}))
}

// last is the name of the Transaction that was made last.
func (b *bench) last() string { return fmt.Sprintf("txn-%d", b.made) }

// tolerated reports whether all errors among findings are of one of the reasons.
func tolerated(found check.Findings, reasons []check.Reason) bool {
	return !slices.ContainsFunc(found.Errors(), func(f check.Finding) bool { return !slices.Contains(reasons, f.Reason) })
}

package size

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	packages "janus.io/janus/api/packages/v1alpha1"
	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
	"janus.io/janus/test/xpkg"
)

// mostForPackages is how much memory janusd may take for the largest change of packages.
const mostForPackages = 300 // MiB

// The limits of what is read of images, in bytes of YAML.
const (
	largestPackage  = 16 << 20
	largestPackages = 24 << 20
)

// kinds are those of Crossplane that a plan reads, as definitions of any content: no Crossplane runs here.
func kinds(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range []string{"crd/backup.janus.io_transactions.yaml", "packages/objects/pkg.janus.io_packagetransactions.yaml"} {
		text, err := os.ReadFile(filepath.Join(harness.Root(), "deploy", filepath.FromSlash(from)))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(from)), text, 0o600)) //nolint:gosec // G703: the files are ours
	}
	for _, of := range []string{
		"pkg.crossplane.io v1 Provider", "pkg.crossplane.io v1 Configuration", "pkg.crossplane.io v1 Function", "pkg.crossplane.io v1 ProviderRevision",
		"pkg.crossplane.io v1 ConfigurationRevision", "pkg.crossplane.io v1 FunctionRevision", "pkg.crossplane.io v1beta1 Lock",
		"pkg.crossplane.io v1beta1 ImageConfig", "apiextensions.crossplane.io v1alpha1 ManagedResourceDefinition",
	} {
		group, version, kind := strings.Fields(of)[0], strings.Fields(of)[1], strings.Fields(of)[2]
		plural := strings.ToLower(kind) + "s"
		text := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Cluster
  names: {kind: %[3]s, plural: %[1]s, singular: %[4]s, listKind: %[3]sList}
  versions:
  - name: %[5]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, group, kind, strings.ToLower(kind), version)
		require.NoError(t, os.WriteFile(filepath.Join(dir, plural+".yaml"), []byte(text), 0o600))
	}
	return dir
}

// definition is that of a kind, of so many bytes or a little more, as providers have them: fields with
// descriptions; or as many fields as there is room for, without any.
func definition(kind, color string, bytes int, described bool) string {
	var b strings.Builder
	plural := strings.ToLower(kind) + "s"
	fmt.Fprintf(&b, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.acme.io}
spec:
  group: acme.io
  scope: Cluster
  names: {kind: %[2]s, plural: %[1]s, singular: %[3]s, listKind: %[2]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              %[4]s: {type: string}
`, plural, kind, strings.ToLower(kind), color)
	for i := 0; b.Len() < bytes; i++ {
		if !described {
			fmt.Fprintf(&b, "              field%d: {type: string}\n", i)
			continue
		}
		fmt.Fprintf(&b, "              field%d:\n                description: What field %d of the service is, as its own documentation says it, in a sentence or two.\n                type: string\n", i, i)
	}
	return b.String()
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func crossplaneResource(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: version, Resource: resource}
}

// each is how large a definition is.
const each = 1 << 20

// stream is a package of so many bytes, padded by a comment. Its first definition has no descriptions.
func stream(name, dependsOn, color string, bytes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: %s}\nspec: {dependsOn: [%s]}\n", name, dependsOn)
	for i := 0; b.Len()+each+4096 < bytes; i++ {
		b.WriteString("---\n" + definition(fmt.Sprintf("%sKind%d", strings.ToUpper(name[:1])+name[1:], i), color, each, i > 0))
	}
	b.WriteString("# ")
	b.WriteString(strings.Repeat("x", max(0, bytes-b.Len()-1)))
	b.WriteString("\n")
	return b.String()
}

// hollow is a package of almost so many bytes, with as many values as are read.
func hollow(bytes int) string {
	var b strings.Builder
	b.WriteString("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: hollow}\n")
	for i := 0; ; i++ {
		one := fmt.Sprintf("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: hollow%d.acme.io}\nx: [%s{}]\n", i, strings.Repeat("{a: b},", 99_000))
		if b.Len()+len(one) > bytes {
			return b.String()
		}
		b.WriteString(one)
	}
}

// planned is a cluster with a janusd as it is shipped that runs PackageTransactions, and a registry.
type planned struct {
	*harness.Env
	t        *testing.T
	registry *xpkg.Registry
	janusd   memory
}

func newPlanned(t *testing.T) *planned {
	t.Helper()
	cluster, err := testcluster.Start(testcluster.Options{CRDs: kinds(t)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	s := &stage{Env: harness.On(t, cluster), t: t}
	rights, err := os.ReadFile(filepath.Join(harness.Root(), "deploy", "packages", "objects", "rbac.yaml"))
	require.NoError(t, err)
	s.Apply(string(rights))
	s.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: ` + s.Namespace + `}]
---
apiVersion: pkg.crossplane.io/v1beta1
kind: Lock
metadata: {name: lock}
`)
	s.start()
	return &planned{Env: s.Env, t: t, registry: xpkg.Serve(t, nil), janusd: s.janusd}
}

func (p *planned) source(name string) string { return p.registry.Host + "/acme/" + name }

// install has a package checked, and nothing made, and returns what came of it, and how much memory it took.
func (p *planned) install(name, image string) (*packages.PackageTransaction, int64) {
	p.t.Helper()
	p.janusd.reset()
	p.Apply(fmt.Sprintf(`
apiVersion: pkg.janus.io/v1alpha1
kind: PackageTransaction
metadata: {name: %s}
spec:
  change: Install
  install: {package: {apiVersion: pkg.crossplane.io/v1, kind: Provider, metadata: {name: acme-large}, spec: {package: %q}}}
  serviceAccountRef: {namespace: %s, name: deployer}
  dryRun: true
`, name, image, p.Namespace))
	began := time.Now()
	for {
		require.Less(p.t, time.Since(began), 8*time.Minute, "%s does not end", name)
		u, err := p.Dynamic.Resource(packages.Resource).Get(p.t.Context(), name, metav1.GetOptions{})
		require.NoError(p.t, err)
		out := &packages.PackageTransaction{}
		require.NoError(p.t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out))
		if out.Status.CompletionTime != nil {
			peak := p.janusd.peak()
			p.t.Logf("%s: %d MiB, %s", name, peak>>20, time.Since(began).Round(time.Second))
			return out, peak
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func says(p *packages.PackageTransaction, kind string) string {
	c := meta.FindStatusCondition(p.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// As much as is read of images is checked within the memory that janusd has, and more is refused.
func TestTheLargestPackagesTakeLittleMemory(t *testing.T) {
	p := newPlanned(t)
	needs := fmt.Sprintf("{provider: %q, version: v1.0.0}", p.source("more"))
	p.registry.Push("acme/large:v1.0.0", stream("large", needs, "red", largestPackage))
	p.registry.Push("acme/more:v1.0.0", stream("more", "", "red", largestPackages-largestPackage))
	got, peak := p.install("largest", p.source("large")+":v1.0.0")
	require.Regexp(t, "^True DryRun", says(got, packages.Ready))
	assert.LessOrEqual(t, peak>>20, int64(mostForPackages), "MiB")

	p.registry.Push("acme/large:v1.0.1", stream("large", needs, "red", largestPackage+1))
	got, peak = p.install("larger", p.source("large")+":v1.0.1")
	assert.Regexp(t, `^False ImageUnusable: .*package.yaml takes more than 16777216 bytes`, says(got, packages.Validated))
	assert.LessOrEqual(t, peak>>20, int64(mostForPackages), "MiB")
	p.registry.Push("acme/large:v1.0.2", stream("large", strings.Replace(needs, "v1.0.0", "v1.0.1", 1), "red", largestPackage))
	p.registry.Push("acme/more:v1.0.1", stream("more", "", "red", largestPackages-largestPackage+1))
	got, peak = p.install("too-many", p.source("large")+":v1.0.2")
	assert.Regexp(t, `^False ImageUnusable: .*the packages that the change is about take more than 25165824 bytes together`, says(got, packages.Validated))
	assert.LessOrEqual(t, peak>>20, int64(mostForPackages), "MiB")
	assert.Zero(t, got.Status.Failures, "it does not get better by waiting")

	// Values as short as can be, of which decoded each takes ten times as much.
	p.registry.Push("acme/large:v1.0.3", hollow(largestPackage))
	got, peak = p.install("hollow", p.source("large")+":v1.0.3")
	require.Regexp(t, "^True DryRun", says(got, packages.Ready))
	assert.LessOrEqual(t, peak>>20, int64(mostForPackages), "MiB")

	made, err := p.Dynamic.Resource(api.Resource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, made.Items)
}

// The definitions that a package has are read one by one.
func TestTheLargestUpgradeTakesLittleMemory(t *testing.T) {
	p := newPlanned(t)
	old := stream("large", "", "red", largestPackage)
	p.registry.Push("acme/large:v1.0.0", old)
	p.registry.Push("acme/large:v1.1.0", stream("large", "", "blue", largestPackage))
	var refs []any
	documents := strings.Split(old, "\n---\n")[1:]
	for _, text := range documents {
		text, _, _ = strings.Cut(text, "\n# ")
		objects, err := harness.Decode(text)
		require.NoError(t, err)
		_, err = p.Dynamic.Resource(definitions).Create(t.Context(), objects[0], metav1.CreateOptions{})
		require.NoError(t, err)
		refs = append(refs, map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": objects[0].GetName()})
	}
	require.Greater(t, len(refs), 10)
	p.installed(refs)
	for i, text := range documents {
		kind := fmt.Sprintf("LargeKind%d", i)
		p.Served("acme.io/v1 " + kind)
		require.Contains(t, text, kind)
		p.Apply("apiVersion: acme.io/v1\nkind: " + kind + "\nmetadata: {name: mine}\nspec: {red: \"yes\", field7: x}\n")
	}
	got, peak := p.install("upgrade", p.source("large")+":v1.1.0")
	assert.Regexp(t, `^False SchemaIncompatible: .*harms 1 of 1 custom resource: mine \(loses spec.red\)`, says(got, packages.Validated), "all were looked at")
	assert.LessOrEqual(t, peak>>20, int64(mostForPackages), "MiB")
}

// installed makes the objects that Crossplane has of a package.
func (p *planned) installed(refs []any) {
	p.t.Helper()
	conditions := func(kinds ...string) (out []any) {
		for _, kind := range kinds {
			out = append(out, map[string]any{"type": kind, "status": "True", "observedGeneration": int64(1)})
		}
		return out
	}
	image := p.source("large") + ":v1.0.0"
	for _, object := range []map[string]any{
		{
			"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": map[string]any{"name": "acme-large"}, "spec": map[string]any{"package": image},
			"status": map[string]any{"currentRevision": "acme-large-1", "conditions": conditions("Installed", "Healthy")},
		},
		{
			"apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision",
			"metadata": map[string]any{"name": "acme-large-1", "labels": map[string]any{"pkg.crossplane.io/package": "acme-large"}},
			"spec":     map[string]any{"desiredState": "Active", "image": image, "revision": int64(1)},
			"status":   map[string]any{"objectRefs": refs, "conditions": conditions("RevisionHealthy")},
		},
	} {
		resource := map[string]string{"Provider": "providers", "ProviderRevision": "providerrevisions"}[object["kind"].(string)]
		_, err := p.Dynamic.Resource(crossplaneResource("v1", resource)).Create(p.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
		require.NoError(p.t, err)
	}
	locks := p.Dynamic.Resource(crossplaneResource("v1beta1", "locks"))
	lock, err := locks.Get(p.t.Context(), "lock", metav1.GetOptions{})
	require.NoError(p.t, err)
	lock.Object["packages"] = []any{map[string]any{"name": "acme-large-1", "kind": "Provider", "source": p.source("large"), "version": "v1.0.0"}}
	_, err = locks.Update(p.t.Context(), lock, metav1.UpdateOptions{})
	require.NoError(p.t, err)
}

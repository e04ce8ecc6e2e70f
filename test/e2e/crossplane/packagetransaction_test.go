package crossplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/internal/target"
	"janus.io/janus/packages/controller"
	"janus.io/janus/packages/controller/progress"
	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/harness"
)

// fast is what the API promises, with shorter waits.
var fast = progress.Policy{Look: 100 * time.Millisecond, RetryBase: 300 * time.Millisecond, RetryMax: time.Second}

// installPackages gives janusd the rights that deploy/packages has, and the ServiceAccount those of
// the example.
func (w *world) installPackages() {
	w.t.Helper()
	for _, file := range []string{"rbac.yaml", "policy.yaml"} {
		text, err := os.ReadFile(filepath.Join(harness.Root(), "deploy", "packages", "objects", file))
		require.NoError(w.t, err)
		w.Apply(string(text))
	}
	rights, err := os.ReadFile(filepath.Join(harness.Root(), "examples", "packages", "checks.yaml"))
	require.NoError(w.t, err)
	w.Apply(strings.ReplaceAll(string(rights), "namespace: shop", "namespace: "+w.Namespace))
	w.t.Cleanup(func() {
		out, err := w.shell.Run(context.Background(), "kubectl delete ptxn --all --timeout=60s")
		require.NoError(w.t, err, out)
	})
}

// startPackages runs PackageTransactions as janusd does, with its rights.
func (w *world) startPackages() {
	w.t.Helper()
	w.startPackagesWith(func(*controller.Options) {})
}

// startPackagesWith is startPackages with other options.
func (w *world) startPackagesWith(change func(*controller.Options)) {
	w.t.Helper()
	w.installPackages()
	config, err := w.AsJanusd(w.t.Context())
	require.NoError(w.t, err)
	own, err := dynamic.NewForConfig(config)
	require.NoError(w.t, err)
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(w.t, err)
	accounts := target.NewClients(config, kube.CoreV1(), harness.Identity)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	metrics, err := controller.NewMetrics(prometheus.NewRegistry(), clock.RealClock{})
	require.NoError(w.t, err)
	options := controller.Options{
		Own: own, Watcher: own, Leases: kube.CoordinationV1(), Discovery: kube.Discovery(),
		Act: func(ctx context.Context, account types.NamespacedName) (dynamic.Interface, error) {
			id, err := accounts.As(ctx, account)
			if err != nil {
				return nil, err
			}
			return id.Dynamic, nil
		},
		Namespace: harness.SystemNamespace, Crossplane: crossplane.Namespace, HistoryLimit: 10, Policy: fast, PackageTimeout: "60s",
		Serves:   func(namespace string) bool { return namespace == w.Namespace },
		Observer: controller.NewRecorder(broadcaster.NewRecorder(runtime.NewScheme(), "janusd"), metrics, zaptest.NewLogger(w.t)),
		Clock:    clock.RealClock{}, Log: zaptest.NewLogger(w.t),
	}
	change(&options)
	c := controller.New(options)
	ctx, stop := context.WithCancel(context.Background())
	require.NoError(w.t, broadcaster.StartRecordingToSinkWithContext(ctx))
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	w.t.Cleanup(func() { stop(); <-done; broadcaster.Shutdown() })
}

// submit creates a PackageTransaction with a part of its spec as YAML.
func (w *world) submit(name, spec string) {
	w.t.Helper()
	require.NoError(w.t, w.trySubmit(name, spec))
}

func (w *world) trySubmit(name, spec string) error {
	w.t.Helper()
	objects, err := harness.Decode(fmt.Sprintf("apiVersion: pkg.janus.io/v1alpha1\nkind: PackageTransaction\nmetadata: {name: %s}\nspec: {serviceAccountRef: {namespace: %s, name: installer}, %s}\n",
		name, w.Namespace, spec))
	require.NoError(w.t, err)
	_, err = w.Dynamic.Resource(api.Resource).Create(w.t.Context(), objects[0], metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// provider is the part of the spec that installs one.
func install(name, image string) string {
	return fmt.Sprintf("change: Install, install: {package: {apiVersion: pkg.crossplane.io/v1, kind: Provider, metadata: {name: %s}, spec: {package: %q}}}", name, image)
}

// remove is the part of the spec that deletes a package.
func remove(source string) string {
	return fmt.Sprintf("change: Delete, delete: {source: %q}", source)
}

func (w *world) packageTransaction(name string) *api.PackageTransaction {
	w.t.Helper()
	u, err := w.Dynamic.Resource(api.Resource).Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	p := &api.PackageTransaction{}
	require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p))
	return p
}

// over waits for the end of a PackageTransaction.
func (w *world) over(name string) *api.PackageTransaction {
	w.t.Helper()
	deadline := time.Now().Add(2 * crossplane.Wait)
	for {
		p := w.packageTransaction(name)
		if p.Status.CompletionTime != nil && len(p.Finalizers) == 0 {
			return p
		}
		require.True(w.t, time.Now().Before(deadline), "%s has not ended: %+v", name, p.Status)
		time.Sleep(100 * time.Millisecond)
	}
}

// says is the status, the reason and the message of a condition.
func says(p *api.PackageTransaction, kind string) string {
	c := meta.FindStatusCondition(p.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// compiled are the Transactions of a PackageTransaction.
func (w *world) compiled(name string) []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.Dynamic.Resource(txn.Resource).Namespace(w.Namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: api.LabelTransaction + "=" + name})
	require.NoError(w.t, err)
	return list.Items
}

// locked is what Crossplane's Lock has: names, sources and tags.
func (w *world) locked() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	packages, _, err := unstructured.NestedSlice(w.Object("pkg.crossplane.io/v1beta1 Lock/lock").Object, "packages")
	require.NoError(w.t, err)
	for _, one := range packages {
		fields := one.(map[string]any)
		out[fmt.Sprint(fields["name"])] = fmt.Sprintf("%s %s", fields["source"], fields["version"])
	}
	return out
}

func TestAPackageTransactionInstalls(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.submit("install-bucket", install("acme-bucket", w.source("bucket")+":v1.0.0"))
	p := w.over("install-bucket")
	require.Regexp(t, "^True TransactionComplete", says(p, api.Ready))
	assert.Regexp(t, "^True AllValidationsPassed", says(p, api.Validated))
	assert.Regexp(t, "^True InstallationComplete", says(p, api.Installed))
	assert.Positive(t, p.Status.TransactionNumber)
	assert.Equal(t, p.Generation, p.Status.ObservedGeneration)
	proposed := map[string]string{}
	for _, l := range p.Status.ProposedLockPackages {
		tag, digest, _ := strings.Cut(l.Version, "@")
		assert.Contains(t, digest, "sha256:")
		proposed[l.Name] = l.Source + " " + tag
	}
	assert.Equal(t, w.locked(), proposed, "the Lock is what was proposed")
	assert.Equal(t, "install-bucket", w.provider("acme-bucket").GetLabels()[api.LabelTransaction])
	assert.Empty(t, w.provider("acme-bucket").GetOwnerReferences(), "it stays when the PackageTransaction goes")
	made := w.compiled("install-bucket")
	require.Len(t, made, 1)
	assert.Equal(t, p.UID, made[0].GetOwnerReferences()[0].UID)
	assert.Empty(t, made[0].GetFinalizers())

	// What others need is not deleted, and it is said at once.
	w.submit("delete-family", remove(w.source("family")))
	p = w.over("delete-family")
	assert.Regexp(t, "^False HasDependents: .* requires ", says(p, api.Validated))
	assert.Regexp(t, "^False ValidationFailed", says(p, api.Ready))
	assert.Regexp(t, "^True ValidationFailed", says(p, api.Stalled))
	assert.Zero(t, p.Status.Failures)
	assert.Empty(t, w.compiled("delete-family"))
	require.NotNil(t, w.provider("acme-family"))

	// A repeat changes nothing.
	w.submit("again", install("acme-bucket", w.source("bucket")+":v1.0.0"))
	assert.Equal(t, "True TransactionComplete: Everything is as it is to be", says(w.over("again"), api.Ready))

	// A dry run says what would come.
	w.push("bucket", "v1.1.0", "Bucket", sizeAndColor, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.submit("dry", "dryRun: true, "+install("acme-bucket", w.source("bucket")+":v1.1.0"))
	p = w.over("dry")
	assert.Regexp(t, "^True DryRun", says(p, api.Ready))
	assert.Contains(t, fmt.Sprint(p.Status.ProposedLockPackages), "v1.1.0@sha256:")
	assert.Empty(t, w.compiled("dry"))

	w.submit("upgrade", install("acme-bucket", w.source("bucket")+":v1.1.0"))
	require.Regexp(t, "^True ", says(w.over("upgrade"), api.Ready))
	w.submit("downgrade", install("acme-bucket", w.source("bucket")+":v1.0.0"))
	assert.Regexp(t, "^False Downgrade", says(w.over("downgrade"), api.Validated))

	w.submit("delete-bucket", remove(w.source("bucket")))
	require.Regexp(t, "^True ", says(w.over("delete-bucket"), api.Ready))
	assert.Nil(t, w.provider("acme-bucket"))
}

// What Crossplane says is what the PackageTransaction says, and nothing is left.
func TestAPackageTransactionThatFailsIsRolledBack(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
	w.push("family", "v1.0.0", "Config", size)
	stream := crossplane.Stream("Provider", "bucket", []string{crossplane.Needs(w.source("family"), ">=v1.0.0")}, crossplane.Definition("Bucket", size))
	w.registry.Push("acme/bucket:v1.0.0", strings.Replace(stream, "\nspec:\n", "\nspec:\n  crossplane: {version: \">=v3.0.0\"}\n", 1))
	w.submit("install-bucket", "retryLimit: 2, "+install("acme-bucket", w.source("bucket")+":v1.0.0"))
	p := w.over("install-bucket")
	assert.Regexp(t, "^False InstallationFailed: Transaction .* was rolled back: .*Crossplane: .*incompatible Crossplane version", says(p, api.Installed))
	assert.Regexp(t, "^False InstallationFailed", says(p, api.Ready))
	assert.Regexp(t, "^True InstallationFailed", says(p, api.Stalled))
	assert.EqualValues(t, 2, p.Status.Failures)
	assert.Len(t, w.compiled("install-bucket"), 2, "a Transaction for each attempt")
	assert.Nil(t, w.provider("acme-bucket"))
	assert.Nil(t, w.provider("acme-family"), "a dependency that came for it is left")
}

func TestPackageTransactionsTakeTurns(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
	names := []string{"bucket", "queue", "topic"}
	for _, name := range names {
		w.push(name, "v1.0.0", strings.ToUpper(name[:1])+name[1:], size)
		w.submit("install-"+name, install("acme-"+name, w.source(name)+":v1.0.0"))
	}
	waited := w.waits("install-topic")
	var before *api.PackageTransaction
	for _, name := range names {
		p := w.over("install-" + name)
		require.Regexp(t, "^True ", says(p, api.Ready))
		if before != nil {
			assert.Equal(t, before.Status.TransactionNumber+1, p.Status.TransactionNumber)
			assert.False(t, p.Status.StartTime.Before(before.Status.CompletionTime), "one at a time")
		}
		before = p
	}
	assert.True(t, waited, "it says for whom it waits")
}

// waits reports whether a PackageTransaction says soon that it waits for another.
func (w *world) waits(name string) bool {
	w.t.Helper()
	for range 200 {
		if strings.HasPrefix(says(w.packageTransaction(name), api.Ready), "Unknown WaitingForLock: waiting for PackageTransaction install-") {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// Custom resources stay while a package takes over the objects of another.
func TestAPackageTransactionReplaces(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
	w.installed()
	before := w.Object("acme.io/v1 Bucket/mine")
	w.push("store", "v1.0.0", "Bucket", size)
	w.submit("replace", fmt.Sprintf("change: Replace, replace: {source: %q, package: {apiVersion: pkg.crossplane.io/v1, kind: Provider, metadata: {name: acme-store}, spec: {package: %q}}}",
		w.source("bucket"), w.source("store")+":v1.0.0"))
	p := w.over("replace")
	require.Regexp(t, "^True ", says(p, api.Ready))
	after := w.Object("acme.io/v1 Bucket/mine")
	require.NotNil(t, after)
	assert.Equal(t, before.GetUID(), after.GetUID())
	assert.Len(t, w.locked(), 1)
	assert.Equal(t, w.source("store"), p.Status.ProposedLockPackages[0].Source)

	// Data is lost only if that is allowed.
	w.submit("delete-store", remove(w.source("store")))
	assert.Regexp(t, "^False DataLoss: ", says(w.over("delete-store"), api.Validated))
	w.types("kubectl delete bucket.acme.io mine")
}

// janusd is killed between the steps, and another one finishes. Who has the first shard runs
// PackageTransactions.
func TestAPackageTransactionOutlivesJanusd(t *testing.T) {
	w := newWorldWithoutJanus(t)
	w.installPackages()
	w.OwnRights()
	w.push("bucket", "v1.0.0", "Bucket", size)
	binary := harness.BuildJanusd(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, w.JanusdKubeconfig(t.Context(), kubeconfig))
	start := func() *harness.Program {
		p := harness.RunProgram(t, exec.Command(binary, "--kubeconfig="+kubeconfig, "--namespace="+w.Namespace, "--watch-namespaces="+w.Namespace,
			"--leader-elect", "--shards=2", "--leader-elect-lease-duration=3s", "--metrics-bind-address=0", "--health-probe-bind-address=0"))
		t.Cleanup(func() { p.Signal(syscall.SIGKILL); <-p.Ended() })
		return p
	}
	first := start()
	w.submit("install-bucket", install("acme-bucket", w.source("bucket")+":v1.0.0"))
	w.until("the Transaction is made", func() bool { return len(w.compiled("install-bucket")) > 0 })
	first.Signal(syscall.SIGKILL)
	<-first.Ended()
	start()
	p := w.over("install-bucket")
	require.Regexp(t, "^True ", says(p, api.Ready))
	assert.Zero(t, p.Status.Failures)
	assert.Len(t, w.compiled("install-bucket"), 1)

	// What the first may not have told any more, the second tells; and none of it again and again.
	told := map[string]int{}
	w.until("its end is told", func() bool {
		list, err := w.Kube.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		clear(told)
		for _, event := range list.Items {
			if event.Regarding.UID == p.UID {
				told[event.Reason]++
			}
		}
		return told[progress.TransactionComplete] > 0
	})
	assert.Equal(t, 1, told[progress.TransactionComplete])
	for reason, times := range told {
		assert.LessOrEqual(t, times, 2, reason)
	}
}

// To delete one that runs rolls its Transaction back, and it is gone when that is.
func TestAPackageTransactionThatIsDeletedIsRolledBack(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.submit("install-bucket", install("acme-bucket", w.source("bucket")+":v1.0.0"))
	w.until("the first package is there", func() bool { return w.provider("acme-family") != nil })
	w.types("kubectl delete ptxn install-bucket --timeout=60s")
	assert.Empty(t, w.compiled("install-bucket"), "its Transaction is gone")
	assert.Nil(t, w.provider("acme-family"))
	assert.Nil(t, w.provider("acme-bucket"))

	// The lock is free for the next.
	w.submit("next", "dryRun: true, retryLimit: 100, "+install("acme-bucket", w.source("bucket")+":v1.0.0"))
	require.Regexp(t, "^True ", says(w.over("next"), api.Ready))
}

// The rules are those of the API server.
func TestTheAPIServerRefusesWhatIsNoPackageTransaction(t *testing.T) {
	w := newWorldWithoutJanus(t)
	w.installPackages()
	image := "xpkg.acme.io/acme/bucket:v1.0.0"
	with := func(field string) string {
		return strings.Replace(install("a", image), "{package: \"", "{"+field+", package: \"", 1)
	}
	for spec, want := range map[string]string{
		"change: Install": "install is needed for change Install",
		"change: Delete":  "delete is needed for change Delete",
		"change: Replace": "replace is needed for change Replace",
		"change: Delete, delete: {source: a.io/b}, " + strings.TrimPrefix(install("a", image), "change: Install, "): "install is needed for change Install, and for no other",
		with("packagePullPolicy: Always"):        `Unsupported value: "Always"`,
		with("revisionActivationPolicy: Manual"): `Unsupported value: "Manual"`,
		with("x: 1"):                             `unknown field "spec.install.package.spec.x"`,
		"retryLimit: 0, " + install("a", image):  "should be greater than or equal to 1",
	} {
		require.ErrorContains(t, w.trySubmit("wrong", spec), want, spec)
	}
	require.ErrorContains(t, w.trySubmit(strings.Repeat("a", 64), install("a", image)), "at most 63 characters")

	w.submit("right", install("a", image))
	for _, patch := range []string{`{"spec":{"dryRun":true}}`, `{"spec":{"install":{"package":{"spec":{"package":"a.io/b:v1.0.0"}}}}}`, `{"spec":{"allow":{"dataLoss":true}}}`} {
		_, err := w.Dynamic.Resource(api.Resource).Patch(t.Context(), "right", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.ErrorContains(t, err, "spec is immutable", patch)
	}
	assert.EqualValues(t, 5, *w.packageTransaction("right").Spec.RetryLimit)
}

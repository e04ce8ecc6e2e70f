package apisim_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/target"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/lockmgr"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
	"janus.io/janus/test/apisim"
)

const (
	namespace = "shop"
	system    = "janus-system"
)

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// definition compiles a CRD of the repository.
func definition(t testing.TB, path ...string) *apisim.Definition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	require.NoError(t, err)
	d, err := apisim.Define(text)
	require.NoError(t, err)
	return d
}

// ownDefinition compiles a CRD of this package.
func ownDefinition(t testing.TB, name string) *apisim.Definition {
	t.Helper()
	return definition(t, "test", "apisim", "testdata", "crds", name)
}

func definitions(t testing.TB) []*apisim.Definition {
	return []*apisim.Definition{
		definition(t, "deploy", "crd", "backup.janus.io_transactions.yaml"),
		definition(t, "testdata", "crds", "widgets.yaml"),
	}
}

func configFor(server *apisim.Server, agent string) *rest.Config {
	return &rest.Config{Host: "http://sim", Transport: server, QPS: -1, UserAgent: agent}
}

// ports puts the parts of Janus together on a configuration, as janusd does.
func ports(t testing.TB, config *rest.Config) (engine.Ports, dynamic.Interface, kubernetes.Interface) {
	t.Helper()
	own, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return wiring.Ports(wiring.Parts{
		Own:       own,
		Resolver:  target.Discover(kube.Discovery()),
		Clients:   target.NewClients(config, kube.CoreV1(), "system:serviceaccount:"+system+":janusd"),
		Store:     snapshot.NewStore(kube, nil),
		Revisions: revision.NewStore(kube),
		Locks:     lockmgr.New(kube.CoordinationV1(), lockmgr.Options{Namespace: system}),
		Types:     openapi.New(kube.Discovery().OpenAPIV3(), clock.RealClock{}, zap.NewNop(), openapi.Patience),
	}), own, kube
}

// janus runs a whole Janus until the context ends, and returns what waits for that.
func janus(ctx context.Context, t testing.TB, config *rest.Config) (wait func()) {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Wrap(target.Transport)
	watcher, err := controller.NewWatcher(config)
	require.NoError(t, err)
	config.Timeout = 15 * time.Second
	p, own, kube := ports(t, config)
	metrics, err := controller.NewMetrics(prometheus.NewRegistry(), clock.RealClock{})
	require.NoError(t, err)
	scheme := apiruntime.NewScheme()
	require.NoError(t, api.AddToScheme(scheme))
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	log := zap.NewNop()
	p.Recorder = controller.NewRecorder(broadcaster.NewRecorder(scheme, "janusd"), metrics, clock.RealClock{}, log)
	p.Changes = metrics.Count(p.Changes)
	ctl, err := controller.New(engine.New(p, clock.RealClock{}, plan.DefaultPolicy), wiring.NewJournal(own), watcher, log,
		controller.Options{Namespaces: []string{namespace}, Workers: 4, Resync: time.Hour})
	require.NoError(t, err)
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = ctl.Run(ctx)
	}()
	return func() {
		<-done
		broadcaster.Shutdown()
	}
}

// create makes objects given as YAML, as a person would with a client.
func create(t testing.TB, config *rest.Config, text string) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	for _, part := range strings.Split(text, "---") {
		obj := parse(t, part)
		resource := client.Resource(resourceOf(obj.GroupVersionKind()))
		_, err := resource.Namespace(namespace).Create(context.Background(), obj, metav1.CreateOptions{FieldManager: "tester"})
		require.NoError(t, err, "%s %s", obj.GetKind(), obj.GetName())
	}
}

// parse reads an object given as YAML.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(data))
	return obj
}

func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
}

const things = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: deployer}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue, size: small}}
---
{apiVersion: example.com/v1, kind: Widget, metadata: {name: gadget}, spec: {size: 1, parts: [{name: a, count: 1}, {name: b}]}}
`

func transaction(changes ...string) string {
	return "{apiVersion: backup.janus.io/v1alpha1, kind: Transaction, metadata: {name: t}, spec: {serviceAccountName: deployer, changes: [" + strings.Join(changes, ",") + "]}}"
}

const (
	patchSettings = "{type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: settings}, content: {data: {color: red}}}"
	patchGadget   = "{type: Patch, target: {apiVersion: example.com/v1, kind: Widget, name: gadget}, content: {spec: {size: 2, parts: [{name: a, count: 7}]}}}"
	createSecret  = "{type: Create, target: {apiVersion: v1, kind: Secret, name: key}, content: {stringData: {a: b}}}" //nolint:gosec // it opens nothing
	// notThere fails after the changes before it have been made.
	tooLate = "{type: Create, target: {apiVersion: v1, kind: ConfigMap, name: full}, content: {data: {a: b}}}"
)

func get(server *apisim.Server, apiVersion, kind, name string) *unstructured.Unstructured {
	return server.Get(resourceOf(schema.FromAPIVersionAndKind(apiVersion, kind)), namespace, name)
}

func phaseOf(server *apisim.Server) string {
	phase, _, _ := unstructured.NestedString(get(server, "backup.janus.io/v1alpha1", "Transaction", "t").Object, "status", "phase")
	return phase
}

// await lets time pass in the bubble until the Transaction has ended.
func await(t *testing.T, server *apisim.Server) string {
	t.Helper()
	for range 600 {
		time.Sleep(time.Second)
		synctest.Wait()
		if phase := api.Phase(phaseOf(server)); phase.Terminal() {
			return string(phase)
		}
	}
	t.Fatalf("the Transaction does not end: %s", phaseOf(server))
	return ""
}

func TestAWholeJanusCommits(t *testing.T) {
	crds := definitions(t)
	synctest.Test(t, func(t *testing.T) {
		server := apisim.New(apisim.Options{CRDs: crds, Namespaces: []string{namespace, system}})
		config := configFor(server, "tester")
		create(t, config, things)
		ctx, cancel := context.WithCancel(t.Context())
		wait := janus(ctx, t, configFor(server, "janusd"))
		create(t, config, transaction(patchSettings, createSecret, patchGadget))
		assert.Equal(t, "Committed", await(t, server), "%v", get(server, "backup.janus.io/v1alpha1", "Transaction", "t"))
		assert.Equal(t, map[string]any{"color": "red", "size": "small"}, get(server, "v1", "ConfigMap", "settings").Object["data"])
		assert.Equal(t, map[string]any{"a": "Yg=="}, get(server, "v1", "Secret", "key").Object["data"])
		assert.Equal(t, []any{map[string]any{"name": "a", "count": int64(7)}, map[string]any{"name": "b"}},
			get(server, "example.com/v1", "Widget", "gadget").Object["spec"].(map[string]any)["parts"])
		cancel()
		wait()
		for _, obj := range server.Objects() {
			assert.NotEqual(t, "Lease", obj.GetKind(), "%s is left", obj.GetName())
		}
	})
}

func TestAWholeJanusRollsBack(t *testing.T) {
	crds := definitions(t)
	synctest.Test(t, func(t *testing.T) {
		server := apisim.New(apisim.Options{CRDs: crds, Namespaces: []string{namespace, system}, Admit: func(a apisim.Admission) error {
			if a.Name == "full" && !a.DryRun {
				return assert.AnError
			}
			return nil
		}})
		config := configFor(server, "tester")
		create(t, config, things)
		before := []*unstructured.Unstructured{get(server, "v1", "ConfigMap", "settings"), get(server, "example.com/v1", "Widget", "gadget")}
		ctx, cancel := context.WithCancel(t.Context())
		wait := janus(ctx, t, configFor(server, "janusd"))
		create(t, config, transaction(patchSettings, createSecret, patchGadget, tooLate))
		assert.Equal(t, "RolledBack", await(t, server), "%v", get(server, "backup.janus.io/v1alpha1", "Transaction", "t"))
		for _, was := range before {
			is := get(server, was.GetAPIVersion(), was.GetKind(), was.GetName())
			assert.Equal(t, was.Object["data"], is.Object["data"])
			assert.Equal(t, was.Object["spec"], is.Object["spec"])
			assert.Equal(t, was.GetManagedFields(), is.GetManagedFields())
		}
		assert.Nil(t, get(server, "v1", "Secret", "key"))
		cancel()
		wait()
	})
}

// quiet is a Recorder who says nothing.
type quiet struct{}

func (quiet) Checkpointed(_, _ *api.Transaction) {}
func (quiet) Abandoned(*api.Transaction)         {}
func (quiet) Expired(*api.Transaction, bool)     {}

func BenchmarkTransaction(b *testing.B) {
	crds := definitions(b)
	began, sent := processorTime(b), &counter{}
	for b.Loop() {
		server := apisim.New(apisim.Options{CRDs: crds, Namespaces: []string{namespace, system}})
		config := configFor(server, "tester")
		sent.next = server
		create(b, config, things+"---\n"+`{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {color: blue}}`)
		create(b, config, transaction(patchSettings, strings.ReplaceAll(patchSettings, "settings", "other")))
		config = configFor(server, "janusd")
		config.Transport = sent
		p, own, _ := ports(b, config)
		p.Recorder = quiet{}
		e := engine.New(p, clock.RealClock{}, plan.DefaultPolicy)
		t, err := wiring.NewJournal(own).Read(context.Background(), types.NamespacedName{Namespace: namespace, Name: "t"})
		require.NoError(b, err)
		result := e.Run(context.Background(), t)
		require.NoError(b, result.Err)
		require.Equal(b, "Committed", phaseOf(server))
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N)/1e6, "cpu-ms/op")
	b.ReportMetric(float64(sent.requests.Load())/float64(b.N), "requests/op")
}

// counter counts the requests of Janus.
type counter struct {
	next     http.RoundTripper
	requests atomic.Int64
}

func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.next.RoundTrip(req)
}

// processorTime is what the process has used, garbage collection included: the time
// that matters on a machine that others use too.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"janus.io/janus/test/testcluster"
)

const (
	// settle bounds what the control plane does in the background: roles are
	// aggregated, policies and CRDs take effect some moments after they are made.
	settle = 60 * time.Second
	poll   = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{ControllerManager: true, Alone: true}))
}

// kustomize returns the path of the pinned kustomize, which is built, and fetched if need
// be, first: what go says about that is no warning of kustomize's.
func kustomize(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "-modfile=../hack/tools/go.mod", "kustomize").Output()
	require.NoError(t, err, "find kustomize")
	return strings.TrimSpace(string(out))
}

// build runs the pinned kustomize over a directory, relative to deploy.
func build(t testing.TB, dir string) []*unstructured.Unstructured {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kustomize(t), "build", dir)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%s", said.Bytes())
	require.Empty(t, said.String(), "kustomize must have nothing to warn of")

	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		objects = append(objects, object)
	}
}

// installation is a cluster with everything of deploy applied.
type installation struct {
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
	objects []*unstructured.Unstructured
	// warnings are those that the API server sent while they were applied.
	warnings []string
}

// install applies deploy, in the order in which kustomize prints it, which is
// how kubectl apply -k does. It changes nothing if that was done before.
func install(t testing.TB) installation {
	t.Helper()
	return installed(t, build(t, "."))
}

// installed applies what kustomize has built.
func installed(t testing.TB, objects []*unstructured.Unstructured) installation {
	t.Helper()
	heard := &warnings{}
	config := testcluster.Shared(t).Config()
	config.WarningHandler = heard
	in := installation{config: config, objects: objects}
	var err error
	in.client, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	in.dynamic, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(in.client.Discovery())
	require.NoError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, object := range in.objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		require.NoError(t, err)
		body, err := runtime.Encode(unstructured.UnstructuredJSONScheme, object)
		require.NoError(t, err)
		resource := in.dynamic.Resource(mapping.Resource)
		force := true
		_, err = resource.Namespace(object.GetNamespace()).Patch(t.Context(), object.GetName(), types.ApplyPatchType, body,
			metav1.PatchOptions{FieldManager: "deploy-test", Force: &force, FieldValidation: metav1.FieldValidationStrict})
		require.NoError(t, err, "apply %s %s", kind.Kind, object.GetName())
	}
	in.warnings = heard.all()
	return in
}

// as returns a client of a user, who has no group but that of everybody.
func (in installation) as(t testing.TB, user string) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(in.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// find returns the one object of a kind and name.
func (in installation) find(t testing.TB, kind, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(in.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	require.GreaterOrEqual(t, i, 0, "no %s %s in deploy", kind, name)
	return in.objects[i]
}

// into converts an object of deploy to its type.
func into[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true))
	return typed
}

// warnings collects what the API server warns of.
type warnings struct {
	mu    sync.Mutex
	heard []string
}

// HandleWarningHeader is called for each warning of an answer.
func (w *warnings) HandleWarningHeader(code int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, fmt.Sprintf("%d %s", code, text))
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.heard)
}

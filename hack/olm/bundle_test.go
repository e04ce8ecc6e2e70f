package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/crds"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"janus.io/janus/test/testcluster"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m, testcluster.Options{})) }

const image = "registry.example.com/janusd@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// built is install.yaml of a release, and the bundle that is made of it.
func built(t *testing.T) (install []object, directory string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "../release/manifests.sh", image)
	var said bytes.Buffer
	command.Stderr = &said
	text, err := command.Output()
	require.NoError(t, err, "%s", said.Bytes())
	install, err = decode(text)
	require.NoError(t, err)
	directory = filepath.Join(t.TempDir(), "olm")
	require.NoError(t, run(bytes.NewReader(text), "../..", "v1.2.3", directory))
	return install, directory
}

// What the tools of the Operator Framework check of a bundle, and what the catalogue of
// OperatorHub wants of it.
func TestTheBundleIsValid(t *testing.T) {
	_, directory := built(t)
	bundle, err := manifests.GetBundleFromDir(directory)
	require.NoError(t, err)
	for _, result := range validation.AllValidators.Validate(bundle.ObjectsToValidate()...) {
		assert.Empty(t, result.Errors, "%s", result.Name)
	}
	for _, result := range validation.DefaultBundleValidators.Validate(bundle) {
		assert.Empty(t, result.Errors, "%s", result.Name)
		assert.Empty(t, result.Warnings, "%s", result.Name)
	}
	for _, result := range validation.OperatorHubV2Validator.Validate(bundle) {
		assert.Empty(t, result.Errors, "%s", result.Name)
	}

	// The image of the bundle says the same as its annotations.
	var annotations struct{ Annotations map[string]string }
	text, err := os.ReadFile(filepath.Join(directory, "metadata", "annotations.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &annotations))
	assert.Equal(t, "janus", annotations.Annotations["operators.operatorframework.io.bundle.package.v1"])
	file, err := os.ReadFile(filepath.Join(directory, "bundle.Dockerfile"))
	require.NoError(t, err)
	for name, value := range annotations.Annotations {
		assert.Contains(t, string(file), "\nLABEL "+name+"="+value+"\n")
	}
	assert.Equal(t, len(annotations.Annotations), strings.Count(string(file), "\nLABEL "))
}

// The bundle installs what install.yaml does: each object is in it, in the ClusterServiceVersion, or
// in the file of policies.
func TestTheBundleHasWhatIsInstalledOtherwise(t *testing.T) {
	install, directory := built(t)
	there := map[string]object{}
	files, err := filepath.Glob(filepath.Join(directory, "manifests", "*.yaml"))
	require.NoError(t, err)
	for _, file := range append(files, filepath.Join(directory, "policies.yaml")) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		objects, err := decode(text)
		require.NoError(t, err)
		for _, o := range objects {
			there[o.kind()+" "+o.name()] = o
		}
	}
	version := &v1alpha1.ClusterServiceVersion{}
	convert(t, there["ClusterServiceVersion janus.v1.2.3"], version)
	strategy := version.Spec.InstallStrategy.StrategySpec
	var clusterRules, rules []rbacv1.PolicyRule
	for _, o := range install {
		name := o.kind() + " " + o.name()
		switch {
		case slices.Contains([]string{"Namespace janus-system", "ServiceAccount janusd"}, name), strings.HasSuffix(o.kind(), "RoleBinding") && strings.HasPrefix(o.name(), "janusd"):
			assert.NotContains(t, there, name, "the Lifecycle Manager makes it")
		case name == "Deployment janusd":
			deployment := &appsv1.Deployment{}
			convert(t, o, deployment)
			require.Len(t, strategy.DeploymentSpecs, 1)
			assert.Equal(t, deployment.Spec, strategy.DeploymentSpecs[0].Spec)
			assert.Equal(t, image, deployment.Spec.Template.Spec.Containers[0].Image)
		case name == "ClusterRole janusd":
			role := &rbacv1.ClusterRole{}
			convert(t, o, role)
			clusterRules = append(clusterRules, role.Rules...)
		case o.kind() == "Role" && strings.HasPrefix(o.name(), "janusd"):
			role := &rbacv1.Role{}
			convert(t, o, role)
			rules = append(rules, role.Rules...)
		default:
			require.Contains(t, there, name)
			want := unstructured.Unstructured{Object: o}
			want.SetNamespace("")
			assert.Equal(t, want.Object, map[string]any(there[name]))
			delete(there, name)
		}
	}
	assert.Equal(t, []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "janusd", Rules: clusterRules}}, strategy.ClusterPermissions)
	assert.Equal(t, []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "janusd", Rules: rules}}, strategy.Permissions)
	delete(there, "ClusterServiceVersion janus.v1.2.3")
	assert.Empty(t, there, "and nothing else")
	assert.Equal(t, image, version.Annotations["containerImage"])
}

// The API server, with the definitions of the Lifecycle Manager, takes the ClusterServiceVersion
// without a warning, and prunes nothing of it; and it takes every other object of the bundle.
func TestTheAPIServerTakesTheBundle(t *testing.T) {
	_, directory := built(t)
	config := testcluster.Shared(t).Config()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	namespace := testcluster.Namespace(t)
	definition := &unstructured.Unstructured{}
	definition.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(crds.ClusterServiceVersion())
	require.NoError(t, err)
	create(t, client, schema.GroupVersionResource{Group: apiextensionsv1.GroupName, Version: "v1", Resource: "customresourcedefinitions"}, "", definition)
	versions := client.Resource(schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "clusterserviceversions"}).Namespace(namespace)
	require.Eventually(t, func() bool {
		_, err := versions.List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, wait, poll)

	files, err := filepath.Glob(filepath.Join(directory, "manifests", "*.yaml"))
	require.NoError(t, err)
	require.Greater(t, len(files), 5)
	groups, err := restmapper.GetAPIGroupResources(kube.Discovery())
	require.NoError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(text, &o.Object))
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		require.NoError(t, err, file)
		in := ""
		if mapping.Scope.Name() == "namespace" {
			in = namespace
			o.SetNamespace(in)
		}
		stored := create(t, client, mapping.Resource, in, o)
		if o.GetKind() == "ClusterServiceVersion" {
			assert.Equal(t, into(t, o).Spec, into(t, stored).Spec, "nothing of it is pruned")
		}
	}
}

// create creates an object as strictly as the API server can be asked to.
func create(t *testing.T, client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	stored, err := client.Resource(gvr).Namespace(namespace).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
	t.Cleanup(func() {
		assert.NoError(t, client.Resource(gvr).Namespace(namespace).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}))
	})
	return stored
}

func into(t *testing.T, o *unstructured.Unstructured) *v1alpha1.ClusterServiceVersion {
	t.Helper()
	version := &v1alpha1.ClusterServiceVersion{}
	convert(t, o.Object, version)
	return version
}

// convert wants an object to have no field that its type has not.
func convert(t *testing.T, o map[string]any, typed any) {
	t.Helper()
	require.NotNil(t, o)
	text, err := yaml.Marshal(o)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, typed))
}

// What is wrong is said, and nothing is written.
func TestWhatNoBundleIsMadeOf(t *testing.T) {
	output := filepath.Join(t.TempDir(), "olm")
	for _, c := range []struct{ version, manifests, said string }{
		{"1.2.3", "kind: Deployment", `"1.2.3" is no version`},
		{"v1.2.3", "", "there are none"},
		{"v1.2.3", "kind: Deployment\nmetadata: {name: janusd}", "lack a Deployment, a definition"},
		{"v1.2.3", "kind: Lease\nmetadata: {name: a}", "Lease a: a bundle has no place for it"},
	} {
		require.ErrorContains(t, run(strings.NewReader(c.manifests), "../..", c.version, output), c.said)
		require.NoDirExists(t, output)
	}
}

const (
	// wait bounds how long a definition takes to be served.
	wait = 30 * time.Second
	poll = 100 * time.Millisecond
)

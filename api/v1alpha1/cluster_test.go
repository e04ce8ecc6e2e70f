package v1alpha1_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

const (
	crdName = "transactions.backup.janus.io"
	crdFile = "backup.janus.io_transactions.yaml"
	// settle bounds what the API server does in the background: it serves and
	// publishes a CRD some moments after it has accepted it.
	settle = 60 * time.Second
	poll   = 50 * time.Millisecond
)

var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{}))
}

// server is the API server with the CRD installed.
type server struct {
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
}

// install applies the CRD of deploy/crd and waits until Transactions are
// served. It changes nothing if they are.
func install(t *testing.T) server {
	t.Helper()
	config := testcluster.Shared(t).Config()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	disc, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)

	_, err = client.Resource(crdResource).Apply(t.Context(), crdName, readCRD(t),
		metav1.ApplyOptions{FieldManager: "api-test", Force: true})
	require.NoError(t, err, "the API server must accept the CRD, cost limits of its rules included")
	require.Eventually(t, func() bool {
		for _, version := range v1alpha1.Versions {
			if _, err := client.Resource(version.WithResource("transactions")).List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
				return false
			}
		}
		return true
	}, settle, poll, "Transactions are served")
	return server{dynamic: client, discovery: disc}
}

// transactions returns the Transactions of a new namespace.
func (s server) transactions(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	return s.dynamic.Resource(v1alpha1.Resource).Namespace(testcluster.Namespace(t))
}

// readCRD reads the generated CRD.
func readCRD(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "deploy", "crd", crdFile))
	require.NoError(t, err)
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.UnmarshalStrict(content, &crd.Object))
	require.Equal(t, crdName, crd.GetName())
	return crd
}

// transaction is one that the API server accepts, with the edits made to it.
func transaction(edits ...edit) *unstructured.Unstructured {
	tx := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"serviceAccountName": "deployer",
			"changes":            []any{configMapChange("settings")},
		},
	}}
	tx.SetGroupVersionKind(v1alpha1.Kind)
	tx.SetGenerateName("tx-")
	for _, e := range edits {
		e(tx.Object)
	}
	return tx
}

// configMapChange creates a ConfigMap whose content has some depth.
func configMapChange(name string) map[string]any {
	return map[string]any{
		"name":   name,
		"type":   "Create",
		"target": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name},
		"content": map[string]any{
			"data":     map[string]any{"colour": "blue"},
			"metadata": map[string]any{"labels": map[string]any{"tier": "one"}},
		},
	}
}

// edit changes a Transaction for one case of a table.
type edit func(object map[string]any)

// set puts a value at a path below spec.
func set(value any, path ...string) edit {
	return func(object map[string]any) {
		if err := unstructured.SetNestedField(object, value, append([]string{"spec"}, path...)...); err != nil {
			panic(err)
		}
	}
}

// drop removes a field below spec.
func drop(path ...string) edit {
	return func(object map[string]any) {
		unstructured.RemoveNestedField(object, append([]string{"spec"}, path...)...)
	}
}

// inChange puts a value at a path of the first change.
func inChange(value any, path ...string) edit {
	return func(object map[string]any) {
		if err := unstructured.SetNestedField(firstChange(object), value, path...); err != nil {
			panic(err)
		}
	}
}

// dropInChange removes a field of the first change.
func dropInChange(path ...string) edit {
	return func(object map[string]any) { unstructured.RemoveNestedField(firstChange(object), path...) }
}

// changes replaces the list by n changes whose names differ.
func changes(n int) edit {
	return func(object map[string]any) {
		list := make([]any, n)
		for i := range list {
			list[i] = configMapChange(name(i))
		}
		set(list, "changes")(object)
	}
}

func firstChange(object map[string]any) map[string]any {
	return object["spec"].(map[string]any)["changes"].([]any)[0].(map[string]any)
}

func create(ctx context.Context, c dynamic.ResourceInterface, tx *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return c.Create(ctx, tx, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

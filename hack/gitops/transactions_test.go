package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// transactions returns those of testdata/gitops by the names of their files.
func transactions(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(root + "/testdata/gitops/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		txn := &unstructured.Unstructured{}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		text, err = yaml.YAMLToJSON(text)
		require.NoError(t, err)
		require.NoError(t, txn.UnmarshalJSON(text), file) // which keeps whole numbers whole
		require.Equal(t, "Transaction", txn.GetKind(), file)
		out[strings.TrimSuffix(filepath.Base(file), ".yaml")] = txn
	}
	return out
}

// read reads a YAML file into something.
func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), file)
}

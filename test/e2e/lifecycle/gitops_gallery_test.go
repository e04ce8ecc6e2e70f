package lifecycle

import (
	"flag"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

var update = flag.Bool("update", false, "write testdata/gitops anew")

// firstOfEach goes through all that was written until the Transaction "wrong" failed, and
// returns the first version in each phase.
func (g *gallery) firstOfEach(written <-chan watch.Event) map[api.Phase]*api.Transaction {
	g.t.Helper()
	first := map[api.Phase]*api.Transaction{}
	for event := range written {
		obj, ok := event.Object.(*unstructured.Unstructured)
		require.True(g.t, ok, "%v", event.Object)
		txn := &api.Transaction{}
		require.NoError(g.t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, txn))
		if phase := txn.Status.Phase; phase != "" && first[phase] == nil {
			first[phase] = txn
		}
		if txn.Name == "wrong" && txn.Status.Phase == api.PhaseFailed {
			break
		}
	}
	for _, phase := range []api.Phase{
		api.PhasePreparing, api.PhaseCommitting, api.PhaseCommitted,
		api.PhaseRollingBack, api.PhaseRolledBack, api.PhasePlanned, api.PhaseFailed,
	} {
		assert.NotNil(g.t, first[phase], "%s was never seen", phase)
	}
	return first
}

// keep compares a Transaction with the picture of that name in what tools look at, or with
// -update takes the picture again.
func (g *gallery) keep(name string, txn *api.Transaction) {
	g.t.Helper()
	g.seen[name] = true
	txn = txn.DeepCopy()
	txn.Namespace, txn.UID, txn.ResourceVersion, txn.ManagedFields, txn.CreationTimestamp = "shop", "", "", nil, metav1.Time{}
	txn.SetGroupVersionKind(api.Kind)
	path := filepath.Join("..", "..", "..", "testdata", "gitops", name+".yaml")
	if *update {
		text, err := yaml.Marshal(txn)
		require.NoError(g.t, err)
		require.NoError(g.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(g.t, os.WriteFile(path, text, 0o644))
		return
	}
	text, err := os.ReadFile(path)
	require.NoError(g.t, err)
	kept := &api.Transaction{}
	require.NoError(g.t, yaml.UnmarshalStrict(text, kept))
	assert.Equal(g.t, looked(kept), looked(txn), "%s; take it anew with -update", path)
}

// looked is what tools look at: neither times nor digests.
func looked(t *api.Transaction) map[string]any {
	conditions := map[string]string{}
	for _, c := range t.Status.Conditions {
		conditions[c.Type] = string(c.Status) + " " + c.Reason
	}
	return map[string]any{
		"spec": t.Spec, "generation": t.Generation, "observed": t.Status.ObservedGeneration,
		"phase": t.Status.Phase, "conditions": conditions, "ended": t.Status.CompletionTime != nil,
	}
}

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

// writeManifests writes two sets of manifests: kept.yaml has less than both.yaml.
const writeManifests = `
cat > kept.yaml <<'END'
apiVersion: v1
kind: ConfigMap
metadata: {name: kept}
END
(cat kept.yaml; cat) > both.yaml <<'END'
---
apiVersion: v1
kind: ConfigMap
metadata: {name: left}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
END`

// What kubectl does about the sets of Janus, and Janus about those of kubectl (KEP-3659).
func TestASetIsAnApplySetOfItsOwnTool(t *testing.T) {
	e := harness.New(t)
	e.Start()
	shell := e.Shell()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, shell.Provide("kubectl-janus", self))
	dir := t.TempDir()
	try := func(command string) (string, error) {
		return shell.Run(t.Context(), "cd "+dir+" && export KUBECTL_APPLYSET=true && "+command)
	}
	does := func(command string) string {
		t.Helper()
		out, err := try(command)
		require.NoError(t, err, out)
		return out
	}
	refuses := func(command, says string) {
		t.Helper()
		out, err := try(command + " 2>&1")
		require.Error(t, err, out)
		assert.Contains(t, out, says)
	}
	const id = `$(kubectl get configmap janus-set-shop -o go-template='{{index .metadata.labels "applyset.kubernetes.io/id"}}')`
	does("true" + writeManifests)
	does("kubectl janus run -f both.yaml --set shop --service-account deployer --wait --timeout 2m")

	// Its objects are found by the label of any ApplySet.
	assert.Equal(t, "configmap/kept\nconfigmap/left\nserviceaccount/robot\n", does("kubectl get configmaps,serviceaccounts -l applyset.kubernetes.io/part-of="+id+" -o name"))

	// kubectl does not write the parent of another tool.
	kubectl := "kubectl apply --namespace=" + e.Namespace + " --prune --applyset=configmap/janus-set-shop -f kept.yaml"
	refuses(kubectl, `already exists and is managed by tooling "kubectl-janus" instead of "kubectl"`)
	does("kubectl get configmap left")

	// But for that it would take it: to kubectl the id, the kinds and the objects are right.
	does("kubectl annotate configmap janus-set-shop --overwrite applyset.kubernetes.io/tooling=kubectl/v1.36")
	out := does(kubectl)
	assert.Contains(t, out, "configmap/left pruned")
	assert.Contains(t, out, "serviceaccount/robot pruned")
	assert.Equal(t, "configmap/kept\n", does("kubectl get configmaps,serviceaccounts -l applyset.kubernetes.io/part-of="+id+" -o name"))

	// Janus does not write a parent that is not its own either, nor take objects out of its set.
	refuses("kubectl janus run -f kept.yaml --set shop --service-account deployer",
		"ConfigMap "+e.Namespace+"/janus-set-shop is managed by kubectl/v")
	does("kubectl create configmap janus-set-plain")
	refuses("kubectl janus plan -f kept.yaml --set plain --service-account deployer",
		"ConfigMap "+e.Namespace+"/janus-set-plain is managed by another client, and not by kubectl janus: give --set another name")
	refuses("kubectl janus run -f kept.yaml --set other --service-account deployer",
		"ConfigMap "+e.Namespace+"/kept is part of another set, as its label applyset.kubernetes.io/part-of says: to move it, run kubectl label configmap kept --namespace="+e.Namespace+" applyset.kubernetes.io/part-of- first")
	assert.Equal(t, "configmap/kept\n", does("kubectl get configmaps -l applyset.kubernetes.io/part-of="+id+" -o name"))
}

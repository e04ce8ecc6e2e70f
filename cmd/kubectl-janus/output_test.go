package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"janus.io/janus/engine/plan"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// withoutOutput are the commands that print nothing that a program would read, and why.
var withoutOutput = map[string]string{
	"locks hold":    "runs a command, or says what it did",
	"locks release": "says what it did",
	"ui":            "serves a page",
}

// elsewhereTested are the commands whose output is tested where there is what they are about.
var elsewhereTested = map[string]string{
	"package list": onCrossplane, "package tree": onCrossplane,
	"package install": onCrossplane, "package delete": onCrossplane, "package replace": onCrossplane,
	"package plan install": onCrossplane, "package plan delete": onCrossplane, "package plan replace": onCrossplane,
}

const onCrossplane = "TestPackagesAreData of test/e2e/crossplane"

// leaves are the commands that can be run, by their names.
func leaves(root *cobra.Command) map[string]*cobra.Command {
	out := map[string]*cobra.Command{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && !isGroup(c) && c != root && c.Name() != "help" && !strings.Contains(c.CommandPath(), "completion") {
			out[strings.TrimPrefix(c.CommandPath(), root.CommandPath()+" ")] = c
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return out
}

func TestEveryCommandThatPrintsTakesAnOutputFormat(t *testing.T) {
	root := newRoot(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	for name, c := range leaves(root) {
		flag := c.Flags().Lookup("output")
		if _, without := withoutOutput[name]; without {
			assert.Nil(t, flag, name)
			continue
		}
		if assert.NotNil(t, flag, name) {
			assert.Equal(t, "o", flag.Shorthand, name)
			for _, format := range []string{"json", "yaml"} {
				assert.NoError(t, flag.Value.Set(format), "%s -o %s", name, format)
			}
		}
	}
}

// TestWhatIsPrintedAsJSONIsJSON runs each command on a real API server.
func TestWhatIsPrintedAsJSONIsJSON(t *testing.T) {
	e := harness.New(t)
	policy := harness.FastPolicy
	policy.RevisionHistoryLimit = 10
	e.GuardApprovals()
	e.Start(harness.WithPolicy(policy))
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	app := file("app.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: \"1\"}}")
	waits := file("waits.yaml", `{apiVersion: backup.janus.io/v1alpha1, kind: Transaction, metadata: {name: waits}, spec: {serviceAccountName: deployer, changes: [
		{type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: b}, content: {data: {x: "1"}}, readyWhen: {expression: has(object.data.never)}}]}}`)
	_, err := testcluster.Shared(t).Kubectl(t.Context(), "", "--namespace="+e.Namespace, "create", "configmap", "b", "--from-literal=y=1")
	require.NoError(t, err)

	// Each line is run with -o json; has is a part of what it prints.
	steps := []struct{ line, has string }{
		{"lint -f " + waits, `"checked": 1`},
		{"version", `"kubernetes": "v`},
		{"plan -f " + app + " --service-account deployer", `"effect": "Create"`},
		{"run -f " + app + " --service-account deployer --name one --wait", `"phase": "Committed"`},
		{"get one", `"name": "one"`},
		{"describe one", `"events": [`},
		{"tree one", `"target": "ConfigMap ` + e.Namespace + `/a"`},
		{"wait one", `"phase": "Committed"`},
		{"history", `"transaction": "one"`},
		{"history one", `"field": ".data.x"`},
		{"blame configmap/a", `"transaction": "one"`},
		{"owners configmap/a", `"manager": "janus"`},
		{"owners release configmap/b --from kubectl-create --to= --service-account deployer --name given --wait", `"phase": "Committed"`},
		{"undo one --dry-run", `"effect": "Delete"`},
		{"undo one --name back --wait", `"phase": "Committed"`},
		{"rbac one", `"kind": "Role"`},
		{"check", `"result": "ok"`},
		{"run -f " + waits, `"name": "waits"`},
		{"suspend waits", `"suspend": true`},
		{"resume waits", `"name": "waits"`},
		{"locks list", `[`},
		{"cancel waits --wait", `"phase": "`},
		{"recover waits", `[]`},
		{"retry waits --name again", `"name": "again"`},
		{"delete waits", `"name": "waits"`},
		{"run -f " + app + " --service-account deployer --require-approval --name held", `"name": "held"`},
		{"approve held", `"effect": "Create"`},
		{"cancel held --wait", `"name": "held"`},
		{"cancel again --wait", `"phase": "`},
	}
	run := map[string]bool{}
	for _, step := range steps {
		if step.line == "approve held" {
			e.Await("held", "waiting for approval", plan.Standing)
		}
		var out, said bytes.Buffer
		root := newRoot(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &said})
		args := append(strings.Fields(step.line), "-o", "json", "--kubeconfig", testcluster.Shared(t).Kubeconfig, "--namespace", e.Namespace)
		root.SetArgs(args)
		err := root.ExecuteContext(t.Context())
		of, _, findErr := root.Find(args)
		require.NoError(t, findErr)
		run[strings.TrimPrefix(of.CommandPath(), root.CommandPath()+" ")] = true
		// Several objects are printed one after the other, as kubectl does it.
		d, n := json.NewDecoder(bytes.NewReader(out.Bytes())), 0
		for ; d.More(); n++ {
			var v any
			require.NoError(t, d.Decode(&v), "%s: %v\n%s%s", step.line, err, out.String(), said.String())
		}
		assert.Positive(t, n, "%s: %v\n%s", step.line, err, said.String())
		assert.Contains(t, out.String(), step.has, "%s: %v\n%s", step.line, err, said.String())
	}
	for name := range leaves(newRoot(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})) {
		if withoutOutput[name] == "" && elsewhereTested[name] == "" {
			assert.True(t, run[name], "%s is not run; these are: %s", name, slices.Sorted(maps.Keys(run)))
		}
	}
}

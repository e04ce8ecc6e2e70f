package gitops

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const resource = "backup.janus.io_Transaction"

// settings gives a key of argocd-cm.
func setting(t *testing.T, what string) string {
	t.Helper()
	var patch struct {
		Data map[string]string `json:"data"`
	}
	read(t, root+"/deploy/gitops/argocd/argocd-cm.yaml", &patch)
	value := patch.Data["resource.customizations."+what+"."+resource]
	require.NotEmpty(t, value, what)
	return value
}

func TestArgoTellsTheHealthOfATransaction(t *testing.T) {
	script := setting(t, "health")
	got := map[string]string{}
	for name, txn := range transactions(t) {
		health := run(t, script, txn)
		got[name], _ = health["status"].(string)
		assert.Equal(t, ready(t, txn), health["message"], name)
	}
	assert.Equal(t, map[string]string{
		"new": "Progressing", "Preparing": "Progressing", "Committing": "Progressing", "RollingBack": "Progressing",
		"Pending-suspended": "Suspended", "Committing-suspended": "Suspended",
		"Committed": "Healthy", "Planned": "Healthy",
		"RolledBack": "Degraded", "Failed": "Degraded", "Failed-stopped": "Degraded",
	}, got)
}

// ready is the message of the condition Ready, or the phase of one that has none.
func ready(t *testing.T, txn *unstructured.Unstructured) string {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(txn.Object, "status", "conditions")
	require.NoError(t, err)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Ready" && condition["message"] != "" {
			return condition["message"].(string) //nolint:forcetypeassert // A test may panic.
		}
	}
	phase, _, err := unstructured.NestedString(txn.Object, "status", "phase")
	require.NoError(t, err)
	if phase == "" {
		return "Pending"
	}
	return phase
}

// actions are the setting of that name.
type actions struct {
	Discovery   string `json:"discovery.lua"`
	Definitions []struct {
		Name   string `json:"name"`
		Action string `json:"action.lua"`
	} `json:"definitions"`
}

func actionsOf(t *testing.T) actions {
	t.Helper()
	var a actions
	require.NoError(t, yaml.UnmarshalStrict([]byte(setting(t, "actions")), &a))
	return a
}

func TestArgoOffersWhatCanBeDone(t *testing.T) {
	a := actionsOf(t)
	got := map[string]string{}
	for name, txn := range transactions(t) {
		var offered []string
		for action, about := range run(t, a.Discovery, txn) {
			if disabled := about.(map[string]any)["disabled"]; disabled == false { //nolint:forcetypeassert // A test may panic.
				offered = append(offered, action)
			}
		}
		slices.Sort(offered)
		got[name] = strings.Join(offered, " ")
	}
	const running, suspended = "cancel-rollback cancel-stop suspend", "cancel-rollback cancel-stop resume"
	assert.Equal(t, map[string]string{
		"new": running, "Preparing": running, "Committing": running, "RollingBack": running,
		"Pending-suspended": suspended, "Committing-suspended": suspended,
		"Committed": "", "Planned": "", "RolledBack": "", "Failed": "",
		"Failed-stopped": "cancel-rollback",
	}, got)
}

// Each action changes one field, which the API server lets be changed, and nothing else.
func TestEachActionChangesOneField(t *testing.T) {
	want := map[string]func(spec map[string]any){
		"suspend":         func(spec map[string]any) { spec["suspend"] = true },
		"resume":          func(spec map[string]any) { spec["suspend"] = false },
		"cancel-rollback": func(spec map[string]any) { spec["cancel"] = "Rollback" },
		"cancel-stop":     func(spec map[string]any) { spec["cancel"] = "Stop" },
	}
	a := actionsOf(t)
	require.Len(t, a.Definitions, len(want))
	for _, definition := range a.Definitions {
		change := want[definition.Name]
		require.NotNil(t, change, definition.Name)
		for name, txn := range transactions(t) {
			expected := plain(t, txn)
			change(expected["spec"].(map[string]any)) //nolint:forcetypeassert // A test may panic.
			assert.Equal(t, expected, run(t, definition.Action, txn), "%s of %s", definition.Name, name)
		}
	}
	offered := run(t, a.Discovery, transactions(t)["new"])
	assert.Len(t, offered, len(want), "what is offered is defined")
}

// plain is the object as it comes out of Lua: empty maps and lists are left out.
func plain(t *testing.T, txn *unstructured.Unstructured) map[string]any {
	t.Helper()
	text, err := txn.MarshalJSON()
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

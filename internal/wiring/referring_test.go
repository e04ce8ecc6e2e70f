package wiring

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/revision"
)

// accepted is a Transaction of the namespace shop whose items are resolved.
func accepted(changes ...api.Change) *api.Transaction {
	t := &api.Transaction{}
	t.Namespace = "shop"
	t.Spec.Changes = changes
	for i, change := range changes {
		item := api.Item{Name: plan.ChangeName(i, change), Target: change.Target}
		plan.SetItemState(&item, api.ItemPending)
		t.Status.Items = append(t.Status.Items, item)
	}
	return t
}

func changeOf(kind api.ChangeType, apiVersion, what, name, content string) api.Change {
	c := api.Change{Name: name, Type: kind, Target: api.Target{APIVersion: apiVersion, Kind: what, Namespace: "shop", Name: name}}
	if content != "" {
		c.Content = &runtime.RawExtension{Raw: []byte(content)}
	}
	return c
}

// dependenciesOf relates the changes and tells what each depends on.
func dependenciesOf(t *testing.T, txn *api.Transaction) map[string][]string {
	t.Helper()
	references := map[int][]objectName{}
	for i, change := range txn.Spec.Changes {
		if change.Content != nil {
			var content map[string]any
			require.NoError(t, json.Unmarshal(change.Content.Raw, &content))
			references[i] = referencesOf(change.Target, content)
		}
	}
	order, err := plan.Order(txn)
	require.NoError(t, err)
	relate(txn, order, references)
	out := map[string][]string{}
	for _, item := range txn.Status.Items {
		if len(item.DependsOn) > 0 {
			out[item.Name] = item.DependsOn
		}
	}
	return out
}

func TestWhatAPodNeedsIsWhatItsChangeDependsOn(t *testing.T) {
	const web = `{"spec":{"template":{"spec":%s}}}`
	for title, c := range map[string]struct {
		pod  string
		want []string
	}{
		"a volume of a ConfigMap":      {`{"volumes":[{"name":"v","configMap":{"name":"cfg"}}]}`, []string{"cfg"}},
		"a volume of a Secret":         {`{"volumes":[{"name":"v","secret":{"secretName":"key"}}]}`, []string{"key"}},
		"a volume of a claim":          {`{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"disk"}}]}`, []string{"disk"}},
		"a projected volume":           {`{"volumes":[{"projected":{"sources":[{"configMap":{"name":"cfg"}},{"secret":{"name":"key"}}]}}]}`, []string{"cfg", "key"}},
		"a volume that needs a Secret": {`{"volumes":[{"csi":{"driver":"d","nodePublishSecretRef":{"name":"key"}}}]}`, []string{"key"}},
		"an environment":               {`{"containers":[{"envFrom":[{"configMapRef":{"name":"cfg"}},{"secretRef":{"name":"key"}}]}]}`, []string{"cfg", "key"}},
		"a variable":                   {`{"initContainers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"key","key":"k"}}},{"valueFrom":{"configMapKeyRef":{"name":"cfg","key":"k"}}}]}]}`, []string{"cfg", "key"}},
		"a ServiceAccount":             {`{"serviceAccountName":"runner"}`, []string{"runner"}},
		"a pull secret":                {`{"imagePullSecrets":[{"name":"key"}]}`, []string{"key"}},
		"a name that is a label":       {`{"containers":[{"name":"cfg","image":"key","args":["disk"]}],"nodeSelector":{"configMap":"cfg"}}`, nil},
		"a name of another kind":       {`{"volumes":[{"name":"v","secret":{"secretName":"cfg"}}]}`, nil},
		"what is malformed":            {`{"volumes":{"configMap":"cfg"},"containers":[7,null,{"env":"cfg","envFrom":[{"configMapRef":["cfg"]}]}],"serviceAccountName":{"name":"runner"}}`, nil},
		"nothing":                      {`null`, nil},
	} {
		t.Run(title, func(t *testing.T) {
			got := dependenciesOf(t, accepted(
				changeOf(api.Create, "v1", "ConfigMap", "cfg", `{}`), changeOf(api.Patch, "v1", "Secret", "key", `{}`),
				changeOf(api.Update, "v1", "PersistentVolumeClaim", "disk", `{}`), changeOf(api.Create, "v1", "ServiceAccount", "runner", `{}`),
				changeOf(api.Create, "apps/v1", "Deployment", "web", fmt.Sprintf(web, c.pod)),
			))
			assert.Equal(t, c.want, got["web"])
		})
	}
}

func TestWhereThePodsOfAKindAre(t *testing.T) {
	pod := `{"volumes":[{"configMap":{"name":"cfg"}}]}`
	for what, c := range map[string]struct{ apiVersion, kind, content string }{
		"a Pod":                      {"v1", "Pod", `{"spec":` + pod + `}`},
		"a StatefulSet":              {"apps/v1", "StatefulSet", `{"spec":{"template":{"spec":` + pod + `}}}`},
		"a CronJob":                  {"batch/v1", "CronJob", `{"spec":{"jobTemplate":{"spec":{"template":{"spec":` + pod + `}}}}}`},
		"a PodTemplate":              {"v1", "PodTemplate", `{"template":{"spec":` + pod + `}}`},
		"a kind after their example": {"argoproj.io/v1alpha1", "Rollout", `{"spec":{"template":{"spec":` + pod + `}}}`},
	} {
		t.Run(what, func(t *testing.T) {
			got := dependenciesOf(t, accepted(changeOf(api.Create, "v1", "ConfigMap", "cfg", `{}`), changeOf(api.Create, c.apiVersion, c.kind, "web", c.content)))
			assert.Equal(t, map[string][]string{"web": {"cfg"}}, got)
		})
	}
}

func TestWhatElseAChangeDependsOn(t *testing.T) {
	cfg := changeOf(api.Create, "v1", "ConfigMap", "cfg", `{}`)
	owned := changeOf(api.Create, "v1", "Secret", "key", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"cfg","uid":"1"}]}}`)
	mounts := changeOf(api.Create, "apps/v1", "Deployment", "web", `{"spec":{"template":{"spec":{"volumes":[{"configMap":{"name":"cfg"}}]}}}}`)
	asks := changeOf(api.Patch, "v1", "ConfigMap", "gate", `{}`)
	asks.When, asks.ReadyWhen = "objects.cfg != null", &api.ReadyWhen{Expression: `object != null && has(objects["key"].data)`}
	gone := changeOf(api.Delete, "v1", "ConfigMap", "old", "")
	gone.GoneWhen = &api.GoneWhen{Expression: "object == null && objects.cfg != null"}
	elsewhere := mounts
	elsewhere.Target.Namespace = "other"
	deleted := cfg
	deleted.Type, deleted.Content = api.Delete, nil
	again := cfg
	again.Name, again.Type, again.When = "again", api.Patch, "objects.cfg != null"
	told := cfg
	told.Name, told.Type, told.DependsOn = "told", api.Patch, []string{"cfg"}
	waits := asks
	waits.DependsOn = []string{"cfg"}

	for title, c := range map[string]struct {
		changes []api.Change
		want    map[string][]string
	}{
		"its owner":                                         {[]api.Change{cfg, owned}, map[string][]string{"key": {"cfg"}}},
		"what its expressions ask for":                      {[]api.Change{cfg, owned, asks}, map[string][]string{"key": {"cfg"}, "gate": {"cfg", "key"}}},
		"what a goneWhen asks for":                          {[]api.Change{cfg, gone}, map[string][]string{"old": {"cfg"}}},
		"not what comes later":                              {[]api.Change{mounts, cfg}, map[string][]string{}},
		"not what is in another namespace":                  {[]api.Change{cfg, elsewhere}, map[string][]string{}},
		"not what is deleted":                               {[]api.Change{deleted, mounts}, map[string][]string{}},
		"not an earlier change of its own":                  {[]api.Change{cfg, again}, map[string][]string{}},
		"an earlier change of its own that dependsOn names": {[]api.Change{cfg, told}, map[string][]string{"told": {"cfg"}}},
		"each change of an object":                          {[]api.Change{cfg, again, mounts}, map[string][]string{"web": {"cfg", "again"}}},
		"what dependsOn names, and references in a graph as well": {
			[]api.Change{waits, cfg, owned, mounts}, map[string][]string{"key": {"cfg"}, "web": {"cfg"}, "gate": {"cfg"}},
		},
	} {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, c.want, dependenciesOf(t, accepted(c.changes...)))
		})
	}
}

// What is undone depends on the undo of what depended on it.
func TestAnUndoDependsTheOtherWayRound(t *testing.T) {
	original := accepted(
		changeOf(api.Create, "v1", "ConfigMap", "cfg", ""), changeOf(api.Delete, "v1", "ConfigMap", "nothing", ""),
		changeOf(api.Create, "v1", "ConfigMap", "web", ""), changeOf(api.Create, "v1", "ConfigMap", "gate", ""),
	)
	original.Status.Items[1].DependsOn = []string{"cfg"}
	original.Status.Items[2].DependsOn = []string{"nothing"}
	original.Spec.Changes[3].DependsOn = []string{"web"} // as an older Janus has left it
	undo := accepted(changeOf(api.Delete, "v1", "ConfigMap", "gate", ""), changeOf(api.Delete, "v1", "ConfigMap", "web", ""), changeOf(api.Delete, "v1", "ConfigMap", "cfg", ""))
	of := &past{original: original}
	for _, index := range []int{3, 2, 0} {
		of.of.Items = append(of.of.Items, revision.Item{Index: index, Name: original.Status.Items[index].Name})
	}
	relateUndo(undo, &undoing{changes: []inverted{
		{undo.Spec.Changes[0], []made{{of, 0}}}, {undo.Spec.Changes[1], []made{{of, 1}}}, {undo.Spec.Changes[2], []made{{of, 2}}},
	}})
	assert.Empty(t, undo.Status.Items[0].DependsOn)
	assert.Equal(t, []string{"gate"}, undo.Status.Items[1].DependsOn)
	assert.Equal(t, []string{"web"}, undo.Status.Items[2].DependsOn, "through the deletion of what was not there, which has no undo")
}

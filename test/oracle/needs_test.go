package oracle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

// dependent has item 2, the Deployment, depend on item 1, the ConfigMap b.
func dependent(change func(c *api.Change)) func(*world) {
	return func(w *world) { change(&w.evidence.Runs[0].Spec.Changes[2]) }
}

func byName(c *api.Change) { c.DependsOn = []string{"1"} }

// keptWeb is a rollback that keeps item 2. then is what it does with item 1.
func keptWeb(change func(c *api.Change), then hooks) *world {
	all := hooks{
		"lock": dependent(change), "-undo2": nothing, "-owners2": nothing, "-end": failedEnd,
		"-undone2": func(w *world) {
			unresolvedItem(w, 2, tree{"reason": "FieldConflict", "message": "Deployment web", "conflicts": []any{tree{"field": ".metadata.annotations.note"}}})
		},
	}
	for step, act := range then {
		all[step] = act
	}
	return rollBack(all)
}

func unresolvedItem(w *world, i int, says tree) {
	w.checkpoint(func(s tree) {
		item := s["items"].([]any)[i].(tree)
		for key, value := range says {
			item[key] = value
		}
		move(s, i, api.ItemUnresolved)
	})
}

// blocked leaves item 1 in effect.
func blocked(by, message string) hooks {
	return hooks{"-open1": nothing, "-undo1": nothing, "-owners1": nothing, "-undone1": func(w *world) {
		unresolvedItem(w, 1, tree{"reason": "Blocked", "blockedBy": by, "message": message})
	}}
}

func TestWhatIsRolledBackBelowWhatDependsOnItIsFound(t *testing.T) {
	asks := func(c *api.Change) { c.When = `objects["1"] != null` }
	const says = "ConfigMap shop/b stays: item 2"
	for _, c := range []wrong{
		{"while what dependsOn names is in effect", Order, "undid shop/configmaps/b@", keptWeb(byName, nil)},
		{"at the end", Order, "item 1 (Create shop/configmaps/b) is rolled back (@", keptWeb(byName, nil)},
		{"while what its when asks for is in effect", Order, "while item 2, which depends on it, was Unresolved (@", keptWeb(asks, nil)},
		{"a Blocked item that names none", Order, `is Blocked (@`, keptWeb(byName, blocked("", says))},
		{"a Blocked item that names what is rolled back", Order, `by "0", which is not Unresolved`, keptWeb(byName, blocked("0", says))},
		{"a Blocked item that names what has nothing to do with it", Order, "which neither depends on it nor changed it later", keptWeb(func(*api.Change) {}, blocked("2", says))},
		{"a Blocked item that does not say by what", Order, "and does not say so", keptWeb(byName, blocked("2", "ConfigMap shop/b stays"))},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
	t.Run("and what is as it ought to be is not", func(t *testing.T) {
		for _, told := range []*world{keptWeb(byName, blocked("2", says)), keptWeb(asks, blocked("2", says)), keptWeb(func(*api.Change) {}, nil)} {
			var found []string
			for _, b := range told.breaches() {
				if b.Guarantee == Order {
					found = append(found, b.Message)
				}
			}
			assert.Empty(t, found)
		}
	})
}

// What was set aside may need what it depends on to be rolled back first, if that is of a kind
// that refuses requests.
func TestWhatMayRefuseAnItemIsRolledBackBeforeIt(t *testing.T) {
	for resource, allowed := range map[string]bool{"configmaps": false, "validatingadmissionpolicies.admissionregistration.k8s.io": true, "resourcequotas": true} {
		r := &run{Run: &Run{Items: []Ref{{Resource: resource}, {Resource: "deployments.apps"}}}}
		s := &state{items: []item{{}, {aside: true, reason: "Rejected"}}}
		assert.Equal(t, allowed, r.refusedBy(s, 1, 0), resource)
		s.items[1].aside = false
		assert.False(t, r.refusedBy(s, 1, 0), "it was not refused")
	}
}

func TestWhatPodsNeed(t *testing.T) {
	web := func(pod string) string { return `{"spec":{"replicas":1,"template":{"spec":` + pod + `}}}` }
	for content, want := range map[string]string{
		web(`{"volumes":[{"name":"v","configMap":{"name":"b"}}]}`):                                    "ConfigMap",
		web(`{"containers":[{"name":"c","envFrom":[{"configMapRef":{"name":"b"}}]}]}`):                "ConfigMap",
		web(`{"initContainers":[{"name":"c","env":[{"valueFrom":{"secretKeyRef":{"name":"b"}}}]}]}`):  "Secret",
		web(`{"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"b"}}]}}]}`):           "Secret",
		web(`{"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"b"}}]}`):                   "PersistentVolumeClaim",
		web(`{"serviceAccountName":"b"}`):                                                             "ServiceAccount",
		web(`{"imagePullSecrets":[{"name":"b"}]}`):                                                    "Secret",
		`{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"serviceAccountName":"b"}}}}}}`:          "ServiceAccount",
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"b","uid":"1"}]}}`: "Secret",
		web(`{"containers":[{"name":"b","image":"b"}]}`):                                              "",
		`{"data":{"configMap":"b"}}`:                                                                  "",
	} {
		for _, kind := range []string{"ConfigMap", "Secret", "PersistentVolumeClaim", "ServiceAccount"} {
			r := &run{Run: &Run{Items: []Ref{{Resource: strings.ToLower(kind) + "s", Namespace: ns, Name: "b"}, {Resource: "deployments.apps", Namespace: ns, Name: "web"}}}, contents: make([]map[string]any, 2)}
			r.Spec.Changes = []api.Change{
				{Target: api.Target{APIVersion: "v1", Kind: kind, Name: "b"}, Type: api.Create},
				{Target: api.Target{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, Type: api.Create},
			}
			require.NoError(t, json.Unmarshal([]byte(content), &r.contents[1]))
			assert.Equal(t, kind == want, r.refers(1, 0), "%s in %s", kind, content)
		}
	}
}

// Where targets are deleted instead, what depends on an object is deleted before it, whatever the order is.
func TestWhatIsDeletedInsteadIsNeededTheOtherWayRound(t *testing.T) {
	for _, order := range []api.OrderPolicy{api.OrderGraph, api.OrderList} {
		changes := []api.Change{{Name: "a"}, {Name: "b", DependsOn: []string{"a"}}, {Name: "c"}}
		r := &run{Run: &Run{Spec: api.TransactionSpec{Order: order, Changes: changes}, Items: []Ref{mapA, mapB, mapC}}, contents: make([]map[string]any, len(changes))}
		s := &state{}
		r.turning = turning{asked: changes, with: [][]int{nil, {0}, nil}, at: []*state{s, s, nil}, out: make([]bool, len(changes))}
		needs, whole := (&trial{}).needs(r)
		assert.Equal(t, [][]int{{1}, nil, nil}, needs, order)
		assert.True(t, whole)
	}
}

package plan

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

func lack(verb, kind, resource, name string) error {
	err := errclass.New(errclass.Terminal, errclass.AccessDenied, verb, kind+" shop/"+name, "ServiceAccount shop/deployer may not").
		WithHint("grant it " + verb + " on " + resource)
	err.Verb, err.Lack = verb, &errclass.Lack{Account: "shop/deployer", Verb: verb, Resource: resource}
	return err
}

func TestRightsThatAreLackingAreToldTogether(t *testing.T) {
	items := func(names ...string) []api.Item {
		var out []api.Item
		for i, name := range names {
			out = append(out, api.Item{Name: fmt.Sprint(i), Target: api.Target{Kind: "ConfigMap", Namespace: "shop", Name: name}})
		}
		return out
	}
	one := []Problem{{0, lack("patch", "ConfigMap", "configmaps", "a")}}
	assert.Equal(t, "item 0: patch ConfigMap shop/a: ServiceAccount shop/deployer may not; grant it patch on configmaps", sumUp(items("a"), Preflight{Problems: one}).Message,
		"one is told as any other problem")

	several := append(one, Problem{0, lack("update", "ConfigMap", "configmaps", "a")})
	of := items("a")
	reportProblems(of, several)
	assert.Equal(t, "ServiceAccount shop/deployer may not patch and update ConfigMap shop/a; grant it patch and update on configmaps", of[0].Message)
	assert.Equal(t, []string{"patch", "update"}, of[0].MissingVerbs)
	assert.Equal(t, errclass.AccessDenied, of[0].Reason)
	assert.Equal(t, "item 0: "+of[0].Message, sumUp(of, Preflight{Problems: several}).Message)

	all := append(several, Problem{1, lack("patch", "ConfigMap", "configmaps", "b")}, Problem{1, lack("update", "ConfigMap", "configmaps", "b")},
		Problem{2, lack("delete", "Secret", "secrets", "c")})
	assert.Equal(t, "ServiceAccount shop/deployer may not patch and update configmaps (a, b); nor delete secrets (c); grant it these rights: kubectl janus rbac prints them",
		sumUp(items("a", "b", "c"), Preflight{Problems: all}).Message)

	mixed := append(all, Problem{3, errclass.New(errclass.Terminal, errclass.Invalid, "patch", "ConfigMap shop/d", "%w", errors.New("no"))})
	sum := sumUp(items("a", "b", "c", "d"), Preflight{Problems: mixed})
	assert.Equal(t, reasonSeveral, sum.Reason)
	assert.Equal(t, "2 problems with 4 of 4 changes (0, 1, 2, 3): item 3: patch ConfigMap shop/d: no; "+
		"ServiceAccount shop/deployer may not patch and update configmaps (a, b); nor delete secrets (c); grant it these rights: kubectl janus rbac prints them", sum.Message)
}

func TestOfManyObjectsAFewAreNamed(t *testing.T) {
	assert.Equal(t, "a, b, c, d, e and 2 more", few([]string{"a", "b", "c", "d", "e", "f", "g"}))
	assert.Equal(t, "a, b and c", inWords([]string{"a", "b", "c"}))
}

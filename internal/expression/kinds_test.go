package expression_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/internal/expression"
)

var served = []expression.Kind{
	{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true},
	{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true},
	{Group: "cert-manager.io", Version: "v1", Kind: "ClusterIssuer", Resource: "clusterissuers"},
}

func TestWhatAnExpressionOverKindsSays(t *testing.T) {
	for text, want := range map[string]bool{
		`kinds.exists(k, k.group == "cert-manager.io" && k.kind == "ClusterIssuer" && k.version == "v1")`: true,
		`kinds.exists(k, k.group == "cert-manager.io" && k.namespaced)`:                                   false,
		`kinds.exists_one(k, k.resource == "deployments") && !kinds.exists(k, k.group == "gone")`:         true,
		`kinds.filter(k, k.group == "").size() == 1`:                                                      true,
		`kinds.map(k, k.group + "/" + k.version).exists(gv, gv.matches("^apps/v[0-9]+$"))`:                true,
		`size(kinds) > 3`:     false,
		`has(kinds[0].group)`: true,
	} {
		t.Run(text, func(t *testing.T) {
			e, err := expression.CompileKinds(text)
			require.NoError(t, err)
			got, err := e.Evaluate(t.Context(), served)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

func TestAnExpressionOverKindsThatCannotBeRight(t *testing.T) {
	for text, want := range map[string]string{
		`kinds.exists(k, k.groop == "apps")`: "undefined field 'groop'",
		`kinds.exists(k, k.namespaced == 1)`: "found no matching overload",
		`size(kinds)`:                        "it is of type int, and must be true or false",
		`object != null`:                     "undeclared reference to 'object'",
		`objects.a != null`:                  "undeclared reference to 'objects'",
		`kinds.exists(k, `:                   "Syntax error",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := expression.CompileKinds(text)
			assert.ErrorContains(t, err, want)
		})
	}
	_, err := expression.Compile("size(kinds) > 0")
	assert.ErrorContains(t, err, "undeclared reference to 'kinds'", "other expressions see objects alone")
}

// A cluster with thousands of kinds is well within the limit, and what compares each with each is
// not.
func TestTheCostOfAnExpressionOverKindsIsLimited(t *testing.T) {
	many := make([]expression.Kind, 3000)
	for i := range many {
		many[i] = expression.Kind{Group: fmt.Sprintf("g%d.example.com", i/3), Version: "v1", Kind: fmt.Sprintf("Kind%d", i), Resource: fmt.Sprintf("kind%ds", i)}
	}
	for text, fits := range map[string]bool{
		`kinds.exists(k, k.group == "g999.example.com" && k.kind == "Kind2999" && k.version == "v1")`: true,
		`kinds.exists(k, k.group.startsWith("none"))`:                                                 true,
		`kinds.all(a, kinds.exists(b, b.kind == a.resource) || true)`:                                 false,
		// Whatever becomes of the lists, the whole is true, but for that it takes too long.
		`kinds.exists(a, kinds.exists(b, b.kind == a.resource)) || true`: false,
	} {
		t.Run(text, func(t *testing.T) {
			e, err := expression.CompileKinds(text)
			require.NoError(t, err)
			_, err = e.Evaluate(context.Background(), many)
			if fits {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
				assert.Regexp(t, "an expression may|longer than", err.Error())
			}
		})
	}
}

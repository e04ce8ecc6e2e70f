package wiring

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

func contentOfText(t *testing.T, text string) map[string]any {
	t.Helper()
	content, err := contentOf(api.Change{Content: &runtime.RawExtension{Raw: []byte(text)}})
	require.NoError(t, err)
	return content
}

func TestContentMayNotContradictTheTarget(t *testing.T) {
	target := api.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for _, tt := range []struct{ name, content, says string }{
		{"content without identity is that of the target", `{"spec":{}}`, ""},
		{"content with the same identity", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`, ""},
		{"another apiVersion", `{"apiVersion":"apps/v2"}`, `content.apiVersion is "apps/v2" but the target's is "apps/v1"`},
		{"another kind", `{"kind":"Secret"}`, `content.kind is "Secret" but the target's is "Deployment"`},
		{"another name", `{"metadata":{"name":"other"}}`, `content.metadata.name is "other" but the target's is "web"`},
		{"another namespace", `{"metadata":{"namespace":"kube-system"}}`, `content.metadata.namespace is "kube-system" but the target's is "shop"`},
		{"a generated name", `{"metadata":{"generateName":"web-"}}`, "content.metadata.generateName cannot be set"},
		{"a uid", `{"metadata":{"uid":"x"}}`, "content.metadata.uid cannot be set"},
		{"a resourceVersion", `{"metadata":{"resourceVersion":"7"}}`, "content.metadata.resourceVersion cannot be set"},
		{"field managers", `{"metadata":{"managedFields":[]}}`, "content.metadata.managedFields cannot be set"},
		{"a name that is no text", `{"metadata":{"name":7}}`, "content.metadata.name"},
		{"a kind that is no text", `{"kind":{"a":"b"}}`, "content.kind"},
		{"metadata that is no object", `{"metadata":"x"}`, "content.metadata"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := contradiction(contentOfText(t, tt.content), target)
			if tt.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.says)
			assert.Equal(t, errclass.Invalid, errclass.ReasonOf(err))
			assert.Equal(t, errclass.Terminal, errclass.ClassOf(err))
		})
	}
}

func TestNumbersInContentStayWhatTheyAre(t *testing.T) {
	content := contentOfText(t, `{"a":9007199254740993,"b":1.5,"c":[1]}`)
	assert.Equal(t, map[string]any{"a": int64(9007199254740993), "b": 1.5, "c": []any{int64(1)}}, content)
}

func TestContentThatIsNoObjectIsAnError(t *testing.T) {
	for _, text := range []string{`[]`, `"x"`, `{`} {
		_, err := contentOf(api.Change{Content: &runtime.RawExtension{Raw: []byte(text)}})
		require.ErrorContains(t, err, "content is not an object", text)
	}
	content, err := contentOf(api.Change{})
	require.NoError(t, err)
	assert.Nil(t, content)
}

// Two applies by one manager to one object drop each other's fields.
func TestEachItemHasAFieldManagerOfItsOwn(t *testing.T) {
	assert.Equal(t, "janus-0f3b2c1d-0", managerOf("0f3b2c1d-aaaa-bbbb-cccc-000000000000", 0))
	assert.NotEqual(t, managerOf("0f3b2c1d-aaaa", 0), managerOf("0f3b2c1d-aaaa", 1))
	assert.Equal(t, "janus-7-3", managerOf("7", 3))
	assert.LessOrEqual(t, len(managerOf("0f3b2c1d-aaaa-bbbb-cccc-000000000000", 999)), 128)
}

func TestAnItemRemembersWhatItsKindResolvedTo(t *testing.T) {
	ref, err := refOf(api.Item{Resource: "deployments", Deferred: true, Target: api.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}})
	require.NoError(t, err)
	assert.Equal(t, "apps/v1, Resource=deployments", ref.GVR.String())
	assert.Equal(t, "Deployment shop/web", ref.String())
	assert.True(t, ref.Deferred)
	_, err = refOf(api.Item{Name: "a", Target: api.Target{APIVersion: strings.Repeat("/", 3)}})
	require.ErrorContains(t, err, "item a")
}

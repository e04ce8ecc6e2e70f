package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/settings"
	"janus.io/janus/test/harness"
)

// tells makes a namespace one of a janusd that says which kinds are sensitive.
func tells(t *testing.T, e *harness.Env, kinds ...schema.GroupKind) {
	t.Helper()
	data := settings.Settings{SensitiveKinds: kinds}.Data()
	e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {sensitiveKinds: %q}}", settings.Name, data["sensitiveKinds"]))
}

// token is a manifest of a kind that is sensitive or not.
func token(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: token}\ndata: {token: hunter2}\n"), 0o600))
	return file
}

// maker makes requests those of a user.
func maker(real http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Impersonate-User", "maker")
		return real.RoundTrip(r)
	})
}

// A janusd may be told that any kind is sensitive; here it is ConfigMap.
func TestContentOfSensitiveKindsIsStoredInSecrets(t *testing.T) {
	quiet, strict := harness.New(t), harness.New(t)
	tells(t, quiet)
	tells(t, strict, schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Group: "example.com", Kind: "Token"})
	silent := harness.New(t)
	for name, c := range map[string]struct {
		flags  []string
		hidden bool
		says   string
	}{
		"told none":                       {[]string{"--system-namespace", quiet.Namespace}, false, ""},
		"told":                            {[]string{"--system-namespace", strict.Namespace}, true, ""},
		"told and others given":           {[]string{"--system-namespace", strict.Namespace, "--sensitive-kinds", "Other"}, true, ""},
		"told none and given":             {[]string{"--system-namespace", quiet.Namespace, "--sensitive-kinds", "Token.example.com, ConfigMap"}, true, ""},
		"another group is given":          {[]string{"--system-namespace", quiet.Namespace, "--sensitive-kinds", "ConfigMap.example.com"}, false, ""},
		"nothing told":                    {[]string{"--system-namespace", silent.Namespace}, true, "Which kinds are sensitive is not known: there is no ConfigMap " + silent.Namespace + "/janus-settings"},
		"no right to know":                {[]string{"--system-namespace", quiet.Namespace}, true, `Which kinds are sensitive is not known: read ConfigMap ` + quiet.Namespace + `/janus-settings, where janusd says so: configmaps "janus-settings" is forbidden`},
		"no right to know and none given": {[]string{"--system-namespace", quiet.Namespace, "--sensitive-kinds="}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := harness.New(t)
			e.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: maker}
rules:
- {apiGroups: [backup.janus.io], resources: [transactions], verbs: [create]}
- {apiGroups: [""], resources: [configmaps, secrets], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: maker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: maker}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: maker}]
`)
			require.NoError(t, e.AwaitRight(t.Context(), "maker", authzv1.ResourceAttributes{Namespace: e.Namespace, Verb: "create", Group: api.GroupVersion.Group, Resource: "transactions"}))
			var as func(http.RoundTripper) http.RoundTripper
			if strings.HasPrefix(name, "no right") {
				as = maker
			}
			out, err := runs(t, e, as, append([]string{"run", "-f", token(t), "--service-account", "deployer", "--name", "one"}, c.flags...)...)
			require.NoError(t, err, out)
			change := e.Transaction("one").Spec.Changes[0]
			if c.hidden {
				require.Nil(t, change.Content)
				assert.True(t, change.ContentFrom.Confidential())
				assert.Equal(t, []string{"one-content-0"}, e.Names("v1 Secret", api.ContentLabel))
			} else {
				require.NotNil(t, change.Content)
			}
			if c.says == "" {
				assert.NotContains(t, out, "not known")
			} else {
				assert.Contains(t, out, c.says)
				assert.Contains(t, out, "--sensitive-kinds")
			}
		})
	}
	_, err := runs(t, quiet, nil, "run", "-f", token(t), "--service-account", "deployer", "--sensitive-kinds", "tokens")
	require.ErrorContains(t, err, `--sensitive-kinds=tokens: want Kind or Kind.group, and not "tokens"`)
}

// Anyone who has written a Transaction has put its content where it is. If it is too large, what is
// confidential goes into Secrets all the same.
func TestWhatIsSensitiveInATransactionThatIsTooLargeGoesIntoSecrets(t *testing.T) {
	e := harness.New(t)
	tells(t, e, schema.GroupKind{Kind: "ConfigMap"})
	var b strings.Builder
	b.WriteString("apiVersion: backup.janus.io/v1alpha1\nkind: Transaction\nmetadata: {name: theirs}\nspec:\n  serviceAccountName: deployer\n  changes:\n")
	for i := range 20 {
		fmt.Fprintf(&b, "  - {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: part-%d}, content: {data: {text: %s}}}\n", i, strings.Repeat("x", 100_000))
	}
	file := filepath.Join(t.TempDir(), "theirs.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	out, err := runs(t, e, nil, "run", "-f", file, "--system-namespace", e.Namespace)
	require.NoError(t, err, out)
	for _, c := range e.Transaction("theirs").Spec.Changes {
		require.Nil(t, c.Content)
		assert.True(t, c.ContentFrom.Confidential())
	}
	assert.Empty(t, e.Names("v1 ConfigMap", api.ContentLabel))
}

func TestARetryHidesWhatHasBecomeSensitive(t *testing.T) {
	e := harness.New(t)
	e.Refuse()
	e.Start()
	file := filepath.Join(t.TempDir(), "refused.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: refused-a}\n"), 0o600))
	out, err := runs(t, e, nil, "run", "-f", file, "--service-account", "deployer", "--name", "first", "--wait", "--timeout", "2m")
	require.Error(t, err, out)
	require.NotNil(t, e.Transaction("first").Spec.Changes[0].Content)
	out, err = runs(t, e, nil, "retry", "first", "--name", "again", "--sensitive-kinds", "ConfigMap")
	require.NoError(t, err, out)
	require.Nil(t, e.Transaction("again").Spec.Changes[0].Content)
	assert.Equal(t, []string{"again-content-0"}, e.Names("v1 Secret", api.ContentLabel))
}

package input

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// canary is content of Secrets. Where it is seen, Secrets leak.
const canary = "canary-7f3a91c2"

// secretOf is a setup with a Secret whose old value is a canary too.
const secretOf = `
apiVersion: v1
kind: Secret
metadata: {name: app}
data: {password: ` + oldCanary + `}
`

// oldCanary is canary-7f3a91c2-old in base64.
const oldCanary = "Y2FuYXJ5LTdmM2E5MWMyLW9sZA=="

func TestTheContentOfASecretIsToldToNobodyWhenItsChangeFails(t *testing.T) {
	t.Parallel()
	value := base64.StdEncoding.EncodeToString([]byte(canary))
	for _, row := range []struct {
		name, setup, change string
		ends                harness.Ending
	}{
		{
			name:   "a Create that lacks what its type demands",
			change: `Create, content: {type: kubernetes.io/tls, data: {tls.crt: ` + value + `}}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "422 Invalid for data[tls.key]"}},
		},
		{
			name:   "a Create with an unknown field",
			change: `Create, content: {stringData: {password: ` + canary + `}, ` + canary + `: ` + canary + `}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "400 BadRequest"}},
		},
		{
			name:   "a Create whose data is not base64",
			change: `Create, content: {data: {password: ` + canary + `-not-base64}}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "400 BadRequest"}},
		},
		{
			name:   "a Create whose data has the wrong type",
			change: `Create, content: {data: ` + canary + `}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "400 BadRequest"}},
		},
		{
			name: "an Update with an unknown field", setup: secretOf,
			change: `Update, content: {stringData: {password: ` + canary + `}, ` + canary + `: ` + canary + `}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "400 BadRequest"}},
		},
		{
			name: "an Update of an immutable one", setup: secretOf + "immutable: true",
			change: `Update, content: {stringData: {password: ` + canary + `}}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "422 Invalid for immutable (FieldValueForbidden), data (FieldValueForbidden)"}},
		},
		{
			name: "a Patch of an immutable one", setup: secretOf + "immutable: true",
			change: `Patch, content: {stringData: {password: ` + canary + `}}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "422 Invalid for data"}},
		},
		{
			name: "a Patch with an unknown field", setup: secretOf,
			change: `Patch, content: {stringData: {password: ` + canary + `}, ` + canary + `: ` + canary + `}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "Invalid"}},
		},
		{
			name: "a Patch with a value of the wrong type", setup: secretOf,
			change: `Patch, content: {data: [` + canary + `]}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "Invalid"}},
		},
		{
			name: "a Patch of its type", setup: secretOf,
			change: `Patch, content: {type: ` + canary + `}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "422 Invalid for type"}},
		},
		{
			name:   "content that contradicts the target",
			change: `Create, content: {kind: {a: ` + canary + `}, data: {}}`,
			ends:   harness.Ending{Reason: "Invalid", Says: []string{"Secret $NS/app", "content.kind"}},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply(row.setup)
			secret := e.Object("Secret/app")
			log := e.StartLogged()

			txn := e.Run("bad", "changes: [{target: {apiVersion: v1, kind: Secret, name: app}, type: "+row.change+"}]")

			row.ends.In(e).Check(t, e, txn)
			e.Same(secret, "Secret/app")
			e.NothingLeft("bad")
			noCanary(t, e, txn, log)
		})
	}
}

func TestTheContentOfASecretIsToldToNobodyWhenItIsRolledBack(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(secretOf + `
---
apiVersion: v1
kind: Secret
metadata: {name: old}
data: {password: ` + oldCanary + `}
`)
	app, old := e.Object("Secret/app"), e.Object("Secret/old")
	log := e.StartLogged(failingAt(3)(e)...)

	txn := e.Run("back", `
changes:
  - {target: {apiVersion: v1, kind: Secret, name: app}, type: Patch, content: {stringData: {password: `+canary+`}}}
  - {target: {apiVersion: v1, kind: Secret, name: old}, type: Delete}
  - {target: {apiVersion: v1, kind: Secret, name: new}, type: Create, content: {stringData: {password: `+canary+`}}}
`+fixture.CreateLate)

	lateExists.In(e).Check(t, e, txn)
	e.Same(app, "Secret/app")
	e.Same(old, "Secret/old")
	e.Same(nil, "Secret/new")
	e.NothingLeft("back")
	noCanary(t, e, txn, log)
}

// stringData is never stored, and yet anyone who applied it owns it.
func TestAPatchOfStringDataIsRolledBackValuesAndOwners(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, was, is string }{
		{"over stringData", "stringData: {password: old}", "stringData: {password: new}"},
		{"over data", "data: {password: b2xk}", "stringData: {password: new}"},
		{"by data over stringData", "stringData: {password: old}", "data: {password: bmV3}"},
		{"with data beside it", "data: {password: b2xk, user: b2xk}", "stringData: {password: new, data: more}, data: {user: bmV3}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply("{apiVersion: v1, kind: Secret, metadata: {name: app}, " + row.was + "}")
			secret := e.Object("Secret/app")
			e.Start(failingAt(1)(e)...)
			patch := "\n  - {target: {apiVersion: v1, kind: Secret, name: app}, type: Patch, content: {" + row.is + "}}"

			txn := e.Run("back", "changes:"+patch+fixture.CreateLate)
			lateExists.In(e).Check(t, e, txn)
			e.Same(secret, "Secret/app")
			e.NothingLeft("back")

			txn = e.Run("forward", "changes:"+patch)
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, "bmV3", e.Value("Secret/app", "data", "password"))
			e.NothingLeft("forward")
		})
	}
}

// noCanary asserts that the content of Secrets is in nothing that Janus wrote. What
// the user wrote into the spec is the user's.
func noCanary(t *testing.T, e *harness.Env, txn *api.Transaction, log *harness.Log) {
	t.Helper()
	events, err := e.Kube.EventsV1().Events(e.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	configMaps, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	leases, err := e.Kube.CoordinationV1().Leases(e.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for what, value := range map[string]any{
		"the status": txn.Status, "the events": events.Items, "the ConfigMaps": configMaps.Items, "the Leases": leases.Items,
	} {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		assertNoCanary(t, what, string(text))
	}
	require.NotEmpty(t, log.Text())
	assertNoCanary(t, "the log", log.Text())
}

func assertNoCanary(t *testing.T, what, text string) {
	t.Helper()
	assert.NotContains(t, text, canary, what)
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	assert.NotContains(t, text, encoded[:16], what)
}

package input

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

const (
	nullTarget = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, labels: {l: a}, annotations: {note: a}}, data: {a: \"1\", b: \"2\", empty: \"\"}}"
	nullSecret = "{apiVersion: v1, kind: Secret, metadata: {name: NAME}, data: {a: MQ==}}" //nolint:gosec // G101: it is none.
	nullWeb    = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
		"spec: {nodeSelector: {disk: ssd}, containers: [{name: web, image: example.com/web, env: [{name: A, value: a}], args: [a, b], resources: {limits: {cpu: \"1\"}}}]}}}}"
)

// What a null in the content of a change comes to: the change is refused and the fields are
// named, or nothing of the target is there that the null stands for.
var nulls = []struct {
	name, target, change, content string
	// refused are the fields that are named; none if the change is made.
	refused []string
	// warned is part of a warning.
	warned string
}{
	{"an entry of a map", nullTarget, "Patch", `{data: {a: null}}`, []string{".data.a"}, ""},
	{"a map", nullTarget, "Patch", `{data: null}`, []string{".data"}, ""},
	{"an entry that is not there", nullTarget, "Patch", `{data: {c: null}}`, []string{".data.c"}, ""},
	{"an entry that is empty", nullTarget, "Patch", `{data: {empty: null}}`, nil, `.data.empty is null in the content, which removes nothing: it is ""`},
	{"a map that is not there", nullTarget, "Patch", `{binaryData: null}`, nil, ""},
	{"a label", nullTarget, "Patch", `{metadata: {labels: {l: null}}}`, []string{".metadata.labels.l"}, ""},
	{"all annotations", nullTarget, "Patch", `{metadata: {annotations: null}, data: {a: "2"}}`, []string{".metadata.annotations"}, ""},
	{"a Patch with several", nullTarget, "Patch", `{metadata: {labels: {l: null}}, data: {a: null, b: "3"}}`, []string{".metadata.labels.l", ".data.a"}, ""},
	{"what the server sets", nullTarget, "Patch", `{metadata: {creationTimestamp: null, generation: null}, data: {a: "2"}}`, nil, ""},
	{"data of a Secret", nullSecret, "Patch", `{data: {a: null}}`, []string{".data.a"}, ""},
	{"stringData of a Secret", nullSecret, "Patch", `{stringData: {a: null}}`, []string{".data.a"}, ""},
	{"replicas", nullWeb, "Patch", `{spec: {replicas: null}}`, []string{".spec.replicas"}, ""},
	{"a field in an item of a list", nullWeb, "Patch", `{spec: {template: {spec: {containers: [{name: web, image: null}]}}}}`, []string{"image"}, ""},
	{"a value in an item of an item", nullWeb, "Patch", `{spec: {template: {spec: {containers: [{name: web, env: [{name: A, value: null}]}]}}}}`, nil, ""},
	{"an atomic list", nullWeb, "Patch", `{spec: {template: {spec: {containers: [{name: web, args: null}]}}}}`, nil, ""},
	{"an atomic map", nullWeb, "Patch", `{spec: {template: {spec: {nodeSelector: null}}}}`, nil, ""},
	{"a quantity", nullWeb, "Patch", `{spec: {template: {spec: {containers: [{name: web, resources: {limits: {cpu: null}}}]}}}}`, []string{".limits.cpu"}, ""},
	{"a default that nobody has set", nullWeb, "Patch", `{spec: {strategy: null, template: {metadata: {creationTimestamp: null}}}, status: null}`, nil, "removes nothing"},
	{"status and times of a manifest", nullWeb, "Patch", `{metadata: {creationTimestamp: null}, spec: {replicas: 0, template: {metadata: {creationTimestamp: null}}}, status: {}}`, nil, ""},
	{"an entry of a map in an Update", nullTarget, "Update", `{data: {a: null}}`, nil, `.data.a is null in the content, which removes nothing: it is ""`},
	{"a map in an Update", nullTarget, "Update", `{data: null}`, nil, ""},
	{"a Secret in an Update", nullSecret, "Update", `{data: {a: null}}`, nil, ".data.a is null in the content, which removes nothing"},
	{"an entry of a map in a Create", "", "Create", `{data: {a: null}}`, nil, `.data.a is null in the content, which removes nothing: it is ""`},
	{"a map in a Create", "", "Create", `{data: null}`, nil, ""},
}

func TestANullRemovesAFieldOrIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	//nolint:gosec // G101: there are no credentials in it.
	kinds := map[string]string{"": "{apiVersion: v1, kind: ConfigMap, name: NAME}", nullTarget: "{apiVersion: v1, kind: ConfigMap, name: NAME}",
		nullSecret: "{apiVersion: v1, kind: Secret, name: NAME}", nullWeb: "{apiVersion: apps/v1, kind: Deployment, name: NAME}"}
	for i, row := range nulls {
		name := fmt.Sprintf("n%d", i)
		if row.target != "" {
			e.Apply(strings.ReplaceAll(row.target, "NAME", name))
		}
		e.Submit(name, "changes:\n  - {target: "+strings.ReplaceAll(kinds[row.target], "NAME", name)+", type: "+row.change+", content: "+row.content+"}\n")
	}
	for i, row := range nulls {
		t.Run(row.name, func(t *testing.T) {
			txn := e.Ended(fmt.Sprintf("n%d", i))
			warnings := strings.Join(txn.Status.Items[0].Warnings, "\n")
			if len(row.refused) == 0 {
				assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
				assert.Contains(t, warnings, row.warned)
				if row.warned == "" && row.target == nullWeb {
					now := e.Object(fmt.Sprintf("apps/v1 Deployment/n%d", i)).Object["spec"]
					for path, text := range map[string]string{"nodeSelector": "ssd", "args": "[a b]", "value: null": "value:a"} {
						if strings.Contains(row.content, path) {
							assert.NotContains(t, fmt.Sprint(now), text, "it is still there")
						}
					}
				}
				return
			}
			require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
			_, reason, message := harness.Condition(txn, api.ConditionReady)
			assert.Equal(t, errclass.Invalid, reason)
			for _, field := range row.refused {
				assert.Contains(t, message, field)
			}
			assert.Contains(t, message, "nothing was changed")
		})
	}
}

// A custom resource keeps a null where its schema says that a field is nullable.
func TestANullThatASchemaAllowsIsStored(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := fixture.DefineCups(t, e, fixture.CupVersion("v1", true, "a: {type: string, nullable: true}, b: {type: string}, m: {type: object, nullable: true, additionalProperties: {type: string}}"))
	e.Apply("{apiVersion: " + group + "/v1, kind: Cup, metadata: {name: cup}, spec: {a: x, b: x, m: {k: v}}}")
	e.Start()

	txn := e.Run("txn", "changes:\n  - {target: {apiVersion: "+group+"/v1, kind: Cup, name: cup}, type: Patch, content: {spec: {a: null}}}")

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	spec := e.Object(group + "/v1 Cup/cup").Object["spec"].(map[string]any)
	assert.Nil(t, spec["a"])
	assert.Equal(t, "x", spec["b"])

	txn = e.Run("refused", "changes:\n  - {target: {apiVersion: "+group+"/v1, kind: Cup, name: cup}, type: Patch, content: {spec: {b: null}}}")

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	_, reason, message := harness.Condition(txn, api.ConditionReady)
	assert.Equal(t, errclass.Invalid, reason, message)
	assert.Contains(t, message, "spec.b")
}

package kinds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAWebhookThatIsAskedAboutTheRecordsOfJanus(t *testing.T) {
	const all = `operations: ["*"], apiGroups: ["*"], apiVersions: ["*"]`
	for name, c := range map[string]struct {
		webhook string
		asked   bool
	}{
		"everything":                   {`{rules: [{` + all + `, resources: ["*/*"]}]}`, true},
		"every resource":               {`{rules: [{` + all + `, resources: ["*"]}]}`, true},
		"every status":                 {`{rules: [{` + all + `, resources: ["*/status"]}]}`, true},
		"the status of Transactions":   {`{rules: [{operations: [UPDATE], apiGroups: [backup.janus.io], apiVersions: [v1alpha1], resources: ["transactions/*"]}]}`, true},
		"Leases":                       {`{rules: [{operations: [CREATE], apiGroups: [coordination.k8s.io], apiVersions: [v1], resources: [leases]}]}`, true},
		"ConfigMaps, in a second rule": {`{rules: [{` + all + `, resources: [pods]}, {operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}`, true},
		"deletions":                    {`{rules: [{operations: [DELETE], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]}`, false},
		"Pods":                         {`{rules: [{` + all + `, resources: [pods, "pods/*"]}]}`, false},
		"another group":                {`{rules: [{operations: ["*"], apiGroups: [apps], apiVersions: ["*"], resources: ["*"]}]}`, false},
		"it may fail":                  {`{failurePolicy: Ignore, rules: [{` + all + `, resources: ["*/*"]}]}`, false},
		"it picks namespaces":          {`{namespaceSelector: {matchLabels: {a: b}}, rules: [{` + all + `, resources: ["*/*"]}]}`, false},
		"an empty selector":            {`{namespaceSelector: {}, objectSelector: {}, rules: [{` + all + `, resources: ["*/*"]}]}`, true},
		"it picks requests":            {`{matchConditions: [{name: a, expression: "false"}], rules: [{` + all + `, resources: ["*/*"]}]}`, false},
	} {
		configuration := object(t, "{webhooks: ["+c.webhook+"]}").Object
		for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
			assert.Equal(t, c.asked, AsksAboutRecords(schema.GroupKind{Group: admissionGroup, Kind: kind}, configuration), "%s, %s", kind, name)
		}
		assert.False(t, AsksAboutRecords(schema.GroupKind{Group: admissionGroup, Kind: "ValidatingAdmissionPolicy"}, configuration))
	}
}
